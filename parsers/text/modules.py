"""Positions of the modules in a text, which may have several, and other text between them.

    stablehlo:                                     what a program prints, on its way, of itself
    module @jit_step { … }
    hlo:
    HloModule jit_step, … }
    loss 3.25

    *** Begin module_0006.jit_f.before_optimizations.txt ***       what XLA dumps to standard output
    HloModule jit_f, … }
    *** End module_0006.jit_f.before_optimizations.txt ***

A module begins where a line does with one, and goes on to the next, but for lines behind its end that are in no
language that is read here.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

from ..expressions import compiled
from ..record import Record
from ..source import Span

_HLO = b"HloModule "
_START = compiled(rb'\n(?:HloModule |(?:builtin\.)?module (?:[@{]|attributes )|"builtin\.module"|\*\*\* Begin )')
_NAME = compiled(rb'HloModule\s++%?([\w.\-]++)|"?(?:builtin\.)?module"?[^\n@{(]*+@(?:([\w.$\-]++)|"([^"\n]*+)")')
_ABOVE_MLIR = (b"#", b"!", b"//")
"""First words of lines directly above an MLIR module: aliases, and messages of passes."""
_END_OF_HLO = compiled(rb".*\n\}[^\n]*+", re.DOTALL)
_END_OF_MLIR = compiled(rb"\n\}[^\n]*+(?:\n(?:[#!]\w[^\n]*+|\{-#.*?(?:#-\}[^\n]*+|\Z)|[ \t]*+(?=\n)))*+", re.DOTALL)
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_TOKENS = {
    "hlo": compiled(
        rb"([{(\[])|([})\]])|%b|'(?:[^'\\]|\\.)*+'|/\*(?:[^*]++|\*(?!/))*+\*/|//[^\n]*+" % _STRING, re.DOTALL
    ),
    "mlir": compiled(rb"([{(\[])|([})\]])|%b|//[^\n]*+" % _STRING, re.DOTALL),
}
"""Brackets that open and that close, strings and remarks."""
_CLOSING = {"hlo": (b"}",), "mlir": (b"}", b")", b"]")}
_GAP = rb"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+"
_GOES_ON = {
    "hlo": compiled(_GAP + rb"(?:ENTRY\b|%%?[\w.\-]++%b[({]|->|\{|,%bexecution_thread\b)" % ((_GAP,) * 2)),
    "mlir": compiled(
        rb"%b(?:loc%b\(|[#!][\w.$\-]++%b=|\{-#)|(?:(?<=\}\))%b|(?<=\))[ \t]*+)\{"
        rb"|%b(?::|->)|(?![ \t\r]*+\n[ \t\r]*+\n)%b\(" % ((_GAP,) * 6)
    ),
}
"""Beginnings of the rest of a module, behind a brace in the first column that is not its last."""
_IS_OPEN = compiled(rb"(?::|->|\bloc)[ \t]*+\Z")
"""The end of a line behind which a type or a location follows."""
_IS_ABOVE = compiled(_GAP + rb"(?:\Z|[#!][\w.$\-]++%b=)" % _GAP)
"""The text before the word that begins a module, if that is remarks and aliases."""
_BEGIN, _FINISH = b"*** Begin ", b"\n*** End "


class Part(Record, frozen=True):
    """One module of a text: its name, if it has one, or the name of the file that XLA would have written it to."""

    span: Span
    name: str = ""
    file: str = ""


def parts(data: bytes) -> tuple[Part, ...]:
    """The modules of a text in their order; a text in which no line begins with one is one part, whatever it is."""
    starts = [0] if _START.match(b"\n" + data[:100]) else []
    starts += [found.start() + 1 for found in _START.finditer(data)]
    starts = [_with_lines_above(data, start) for start in starts]
    if not starts or _IS_ABOVE.match(data, 0, starts[0]) or language(data[: starts[0]]) is not None:
        starts[:1] = [0]
    found: list[Part] = []
    for start, following in pairwise([*starts, len(data)]):
        if data.startswith(_BEGIN, start):
            found.append(_marked(data, start))
        elif not found or start >= found[-1].span.end:
            found.append(Part(Span(start, _end(data, start, following)), _name(data, start, following)))
    return tuple(found)


def _marked(data: bytes, begin: int) -> Part:
    following = data.find(b"\n" + _BEGIN, begin) + 1 or len(data)
    start = data.find(b"\n", begin) + 1 or len(data)
    file = data[begin + len(_BEGIN) : start].strip(b" *\r\n")
    end = data.find(_FINISH + file, start - 1, following) + 1 or following
    return Part(Span(start, end), file=file.decode("utf-8", "replace"))


def _with_lines_above(data: bytes, start: int) -> int:
    if data.startswith((_HLO, _BEGIN), start):
        return start
    place = start
    while place and data.startswith(_ABOVE_MLIR, above := data.rfind(b"\n", 0, place - 1) + 1):
        place = above
    # Right behind the end of a module, aliases are its own.
    is_of_another = data.startswith(b"}", data.rfind(b"\n", 0, max(place - 1, 0)) + 1)
    return start if is_of_another else place


def _end(data: bytes, start: int, stop: int) -> int:
    """Return the end of the module that starts there, if nothing follows; else the beginning of the next."""
    kind = "hlo" if data.startswith(_HLO, start) else "mlir"
    found = _END_OF_HLO.match(data, start, stop) if kind == "hlo" else _END_OF_MLIR.search(data, start, stop)
    end = found.end() if found else stop
    if found and data[end:stop].strip():
        line = end if kind == "hlo" else data.find(b"\n", found.start() + 1, end)
        end = _end_in_other_layouts(data, start, end if line < 0 else line, stop, kind)
    rest = data[end:stop].strip(b"\n")
    is_cut_off = stop == len(data) and not data.endswith(b"\n") and b"\n" not in rest
    return end if rest.strip() and not is_cut_off and language(rest) is None else stop


def _end_in_other_layouts(data: bytes, start: int, end: int, stop: int, kind: str) -> int:
    """Return where the module ends for which a brace in the first column before `end` may not be the last one."""
    depth = 0
    for token in _TOKENS[kind].finditer(data, start, stop):
        is_behind = token.start() >= end and depth <= 0
        if is_behind and not _IS_OPEN.search(data, max(start, end - 100), end) and not _GOES_ON[kind].match(data, end):
            return end
        depth += (token[1] is not None) - (token[2] is not None)
        if depth <= 0 and token[2] in _CLOSING[kind]:
            end = max(end, token.end())
    return stop if _GOES_ON[kind].match(data, end) else end


def _name(data: bytes, start: int, stop: int) -> str:
    found = _NAME.search(data, start, min(stop, start + (1 << 16)))
    return (found[found.lastindex or 0] if found else b"").decode("utf-8", "replace")


_TYPE = rb"(?:\([^\n]*?\)|[a-z]\w*+\s*+\[[\d,<=?\s]*+\]\s*+(?:\{[^\n}]*+\})?+)"
_REMARKS = rb"(?:\s*+//[^\n]*+)*+\s*+"
_BEGINNINGS = {
    "hlo": (
        compiled(rb"\A" + _REMARKS + rb"HloModule\b"),
        compiled(rb"^[ \t]*+HloModule\b", re.MULTILINE),
        compiled(
            rb"^[ \t]*+(?:(?:ROOT\s++)?%?[\w.\-]++\s*+=\s*+" + _TYPE + rb"\s*+[a-z][\w\-]*+\s*+\(|ENTRY\b[^\n]*\{)",
            re.MULTILINE,
        ),
    ),
    "mlir": (
        compiled(rb"\A(?:\s*+(?://[^\n]*+|[#!]\w[^\n]*+))*+\s*+\"?(?:builtin\.)?(?:module|func\.func|sdy\.mesh)\b"),
        compiled(rb"^[ \t]*+(?:\"?(?:builtin\.)?module\"?\s*+[@{(a]|\"?func\.func\b|sdy\.mesh @)", re.MULTILINE),
        compiled(rb"^[ \t]*+(?:%[\w:]++(?:, %[\w:]++)*+ = )?+\"?(?:stablehlo|sdy|chlo|mhlo|func)\.\w", re.MULTILINE),
    ),
}
"""Beginnings of a text; of a line that begins one; and of lines of which every part of one has some."""

_BYTECODE = compiled(rb"ML\xefR")
_HLO_PROTO = compiled(
    # HloProto and HloModuleProto (XLA, xla/service/hlo.proto): names are the first fields of a module.
    rb"(?:\n[\x80-\xff]{0,4}[\0-\x7f])?\n[\0-\x7f][\w.\-]++\x12[\0-\x7f][\w.\-]++[\x1a\"2]",
    re.DOTALL,
)
_HLO_PROTO_TEXT = compiled(rb"(?:\s*+#[^\n]*+)*+\s*+(?:hlo_module\s*+\{|(?:entry_computation_)?name: \")")


def language(data: bytes) -> Literal["hlo", "mlir"] | None:
    """Return the language of a text that is a module, else of a module in it, or of its lines."""
    for hlo, mlir in zip(_BEGINNINGS["hlo"], _BEGINNINGS["mlir"], strict=True):
        places = [found.start() if (found := each.search(data)) else len(data) for each in (hlo, mlir)]
        if min(places) < len(data):
            return "hlo" if places[0] < places[1] else "mlir"
    return None


def binary_format(data: bytes) -> str | None:
    """In words, what holds a module that jaxlib can print as text."""
    if _BYTECODE.match(data):
        return "MLIR bytecode"
    if exported_bytecode(data) is not None:
        return "a function that JAX exported"
    return "an HLO module as a protocol buffer" if _HLO_PROTO.match(data) else None


def exported_bytecode(data: bytes) -> bytes | None:
    """The module in what `jax.export.Exported.serialize` gives: a FlatBuffer, of whose vectors one is bytecode.

    A FlatBuffer begins with the offset of its table, a vector with its length, both in four bytes.
    """
    if not 4 <= int.from_bytes(data[:4], "little") < min(len(data), 1 << 16):
        return None
    for found in _BYTECODE.finditer(data, 4):
        begin = found.start()
        size = int.from_bytes(data[begin - 4 : begin], "little")
        if len(found[0]) < size <= len(data) - begin:
            return data[begin : begin + size]
    return None


def other_format(data: bytes) -> str | None:
    """In words, what holds a module, though not as text."""
    if _HLO_PROTO_TEXT.match(data):
        return "the text of a protocol buffer, not of an HLO module; XLA dumps that with --xla_dump_hlo_as_text"
    return binary_format(data)
