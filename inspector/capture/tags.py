"""The numbers that `worker/tagging.py` gives to operations, taken out of a stage's text and kept beside it.

    op_name="jit(f)/~op17~/dot_general"      loc("jit(f)/~op17~/dot_general"(#loc9))
    op_name="jit(f)/~op18~/attend/pallas_call"

XLA joins the names of instructions that it makes one of: `a;b`, or `jit(f)/(a:b)/c`. Names that differed in their
numbers alone become one again. A file holds the texts with their numbers.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

from ..catalog.spellings import is_kernel

_MARK = re.compile(rb"~op(\d{1,9})~/?")
_MARKS = re.compile(rb"(?:~op\d{1,9}~/?)++")
"""The numbers of one component, which stand side by side."""
_REST = re.compile(rb'~op(\d{1,9})~/?(?:([^"\n~;]*)"|[^"\n]*")')
"""A name from its first number on; the second group is all of it where nothing was joined to the name."""

_BOUND = re.compile(rb"[:;()/]")
_SEVERAL = re.compile(rb"\((?:~op\d{1,9}~[:;]?)+\)/?")

Tags = bytes
"""Pairs of numbers, packed: an offset in the text, at the last component of a name, and an operation's number."""


def untagged(text: bytes) -> tuple[bytes, Tags]:
    """A text without numbers, and these."""
    if b"~op" not in text:
        return text, b""
    pieces: list[bytes] = []
    pairs = array("I")
    size = end = 0
    for match in _REST.finditer(text):
        at, stop = match.span()
        start = text.rfind(b'"', end, at) + 1
        first = text[start:at]
        if not start or b"\n" in first:
            continue
        number, rest = match.groups()
        if rest is None or first.endswith(b"(") or b";" in first:
            name, numbers = _plain(text[start : stop - 1])
        else:
            name, numbers = first + rest, [int(number)]
        between = text[end:start]
        pieces += (between, name)
        size += len(between)
        last = size + name.rfind(b"/") + 1
        for each in numbers:
            pairs.extend((last, each))
        size += len(name)
        end = stop - 1
    pieces.append(text[end:])
    return b"".join(pieces), pairs.tobytes()


def tagged(text: bytes, tags: Tags) -> bytes:
    """The text with its numbers."""
    pieces: list[bytes] = []
    end = 0
    for offset, number in pairs_of(tags):
        pieces += (text[end:offset], b"~op%d~/" % number)
        end = offset
    return b"".join((*pieces, text[end:]))


def pairs_of(tags: Tags) -> Iterator[tuple[int, int]]:
    """The offsets and numbers, in text order."""
    numbers = array("I", tags)
    return zip(numbers[::2], numbers[1::2], strict=True)


def plain(text: str) -> str:
    """A message of the compiler without numbers."""
    return re.sub(r"~op\d{1,9}~/?", "", text)


def _plain(name: bytes) -> tuple[bytes, list[int]]:
    """A name without numbers, and those of the operations that it names.

    A path may have more of them: those of the calls around, which come before the operation's own.
    """
    inner = _SEVERAL.sub(_side_by_side, name)
    stripped: list[bytes] = []
    for part in inner.split(b";"):
        plain_part = _MARK.sub(b"", part)
        # What a path has in common with the one before may be left out.
        if not any(known == plain_part or known.endswith(b"/" + plain_part) for known in stripped):
            stripped.append(plain_part)
    return b";".join(stripped), _own(inner)


def _own(name: bytes) -> list[int]:
    """The numbers in front of the last components; those of the calls around stand further in front."""
    numbers = _MARK.findall(name)
    if len(numbers) > 1:
        numbers = _MARK.findall(b"".join(found[0] for found in _MARKS.finditer(name) if _is_last(name, found.end())))
    return list(dict.fromkeys(map(int, numbers)))


def _is_last(name: bytes, start: int) -> bool:
    """Return whether no component but a kernel's follows, up to the next of several joined names."""
    depth = 0
    for found in _BOUND.finditer(name, start):
        if depth == 0 and found[0] != b"(":
            return found[0] != b"/" or is_kernel(re.split(b"[:;)/]", name[found.end() :])[0].decode("latin-1"))
        depth += (found[0] == b"(") - (found[0] == b")")
    return True


def _side_by_side(group: re.Match[bytes]) -> bytes:
    return b"".join(b"~op%b~/" % number for number in _MARK.findall(group[0]))
