"""Which passes of XLA's change how many collectives a module has: by the files that XLA writes between passes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Protocol

from ...parsers.source import Source
from ..catalog.spellings import HLO_OPCODES, STARTS
from ..units import plural

MAX_BYTES = 1 << 28
"""Bytes of all such files of a module; of more, nothing is said."""

MAX_CHANGES = 40

_COMPRESSED = re.compile(r"\.(?:gz|xz|bz2|zst)\Z")
_PASS = re.compile(r"(?:.*\.)?\d{4}\.([^/]+?)\.after_([^/]+?)(?:\.before_([^/]+?))?\.(?:txt|hlo\.pb)")
"""How XLA names a module between two passes: the pipeline, the pass before, and the one that follows."""

_OPCODE = re.compile(
    rb"^ *+(?:ROOT )?+%?[\w.\-]++ = .*? (" + "|".join((*HLO_OPCODES, *STARTS)).encode() + rb")\(", re.M
)


class Text(Protocol):
    """A module between two passes, which is read when it is asked for."""

    @property
    def size(self) -> int:
        """Its bytes."""

    def read(self) -> Source:
        """Its text."""


def place_of(file: str) -> tuple[str, str, str] | None:
    """The pipeline, the pass before and the one after, by the name of a file; None where it is no such file's."""
    found = _PASS.fullmatch(_COMPRESSED.sub("", PurePosixPath(file).name))
    return None if found is None else (found[1], found[2], found[3] or "")


def changes(files: Iterable[tuple[str, Text]]) -> str:
    """The collectives of a module after each pass that changes their number, in a sentence; empty without files."""
    named = [(place, text) for name, text in sorted(files) if (place := place_of(name)) is not None]
    if not named:
        return ""
    if sum(text.size for _, text in named) > MAX_BYTES:
        return f"{plural(len(named), 'file')} of single passes were not read: open one to list its collectives"
    found = list(_changed(named))
    more = f"; {plural(len(found) - MAX_CHANGES, 'further change')}" if len(found) > MAX_CHANGES else ""
    return f"collectives by pass: {'; '.join(found[:MAX_CHANGES])}{more}"


def _changed(named: Iterable[tuple[tuple[str, str, str], Text]]) -> Iterator[str]:
    before: Counter[str] | None = None
    for (pipeline, after, _), text in named:
        kinds = Counter(_kind(opcode.decode()) for opcode in _OPCODE.findall(text.read().data))
        if kinds != before:
            where = "at the start" if after == "pipeline-start" else f"after {after!r}"
            yield f"{where} of {pipeline!r} {_counted(kinds)}"
        before = kinds


def _kind(opcode: str) -> str:
    return HLO_OPCODES.get(opcode) or STARTS[opcode]


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(plural(count, kind) for kind, count in sorted(kinds.items())) or "none"
