"""In which language a text is: HLO or MLIR, wherever in the text that begins; or what else it is."""

from __future__ import annotations

import re
from typing import Literal

_TYPE = rb"(?:\([^\n]*?\)|[a-z]\w*+\[[\d,<=?]*+\](?:\{[^\n}]*+\})?+)"
_REMARKS = rb"(?:\s*+//[^\n]*+)*+\s*+"
_BEGINNINGS = {
    "hlo": (
        re.compile(rb"\A" + _REMARKS + rb"HloModule\b"),
        re.compile(rb"^[ \t]*+HloModule\b", re.MULTILINE),
        re.compile(
            rb"^[ \t]*+(?:(?:ROOT )?%?[\w.\-]++ = " + _TYPE + rb" [a-z][\w\-]*+\(|ENTRY %?[\w.\-]++ [^\n]*\{)",
            re.MULTILINE,
        ),
    ),
    "mlir": (
        re.compile(rb"\A(?:\s*+(?://[^\n]*+|[#!]\w[^\n]*+))*+\s*+\"?(?:builtin\.)?(?:module|func\.func|sdy\.mesh)\b"),
        re.compile(rb"^[ \t]*+(?:\"?(?:builtin\.)?module\"?\s*+[@{(a]|\"?func\.func\b|sdy\.mesh @)", re.MULTILINE),
        re.compile(rb"^[ \t]*+(?:%[\w:]++(?:, %[\w:]++)*+ = )?+\"?(?:stablehlo|sdy|chlo|mhlo|func)\.\w", re.MULTILINE),
    ),
}
"""How a text begins; how a line does with which one begins; and lines of which some are in every part of one."""

_OTHERS = (
    (re.compile(rb"ML\xefR"), "this is MLIR as bytecode, not as text"),
    (
        # HloProto and HloModuleProto (XLA, xla/service/hlo.proto): names are the first fields of a module.
        re.compile(rb"(?:\n[\x80-\xff]{0,4}[\0-\x7f])?\n[\0-\x7f][\w.\-]++\x12[\0-\x7f][\w.\-]++[\x1a\"2]", re.DOTALL),
        "this is an HLO module as a protocol buffer; XLA dumps it as text with --xla_dump_hlo_as_text",
    ),
    (
        re.compile(rb"(?:\s*+#[^\n]*+)*+\s*+(?:hlo_module\s*+\{|(?:entry_computation_)?name: \")"),
        "this is the text of a protocol buffer, not of an HLO module; XLA dumps that with --xla_dump_hlo_as_text",
    ),
)


def language(data: bytes) -> Literal["hlo", "mlir"] | None:
    """What a text begins with, where it is all of a module; else what a module in it begins with, or lines are like."""
    for hlo, mlir in zip(_BEGINNINGS["hlo"], _BEGINNINGS["mlir"], strict=True):
        places = [found.start() if (found := each.search(data)) else len(data) for each in (hlo, mlir)]
        if min(places) < len(data):
            return "hlo" if places[0] < places[1] else "mlir"
    return None


def other_format(data: bytes) -> str | None:
    """In words, what a file is that holds a module, though not as text."""
    return next((words for pattern, words in _OTHERS if pattern.match(data)), None)
