"""Scans over all instructions of a module, without a Python object for each of them.

Computations as XLA prints them are read many at once, by one pattern over their text. The others, of which a compiler's
dump has none, are read one by one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from ..record import Record
from . import printed
from .computation import Computation
from .instruction import Instruction

BLOCK = 1 << 15
"""Bytes of text whose rows are taken at once: many enough to keep the loop cheap, few enough for the cache."""

_FIRST, _SECOND = itemgetter(0), itemgetter(1)


class Rows(Record, frozen=True):
    """The names of instructions and, side by side with them, their kinds: pairs of type, as text, and opcode.

    Iterating gives (name, type, opcode). Equal kinds are one object, so that a million rows stay small.
    """

    names: list[str]
    kinds: list[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[str, str, str]:
        return (self.names[index], *self.kinds[index])

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        return ((name, *kind) for name, kind in zip(self.names, self.kinds, strict=True))


def stretches(computations: Sequence[Computation]) -> Iterator[Sequence[Computation]]:
    """The computations in their order: printed ones that follow each other together, others singly."""
    first = 0
    for index, computation in enumerate(computations):
        if index + 1 == len(computations) or not computations[index + 1].follows(computation):
            yield computations[first : index + 1]
            first = index + 1


def read_rows(data: bytes, computations: Sequence[Computation]) -> Rows:
    """The rows of all instructions, in text order."""
    rows = _rows(data, computations)
    if rows is None:
        # A line starts like an instruction and is none, or is not as printed: find out which computations it is in.
        starts = [computation.body_start for computation in computations]
        for _ in _printed_rows(data, computations, starts, frozenset()):
            pass
        rows = _rows(data, computations)
    return rows or Rows([], [])


def instructions_with(
    data: bytes, computations: Sequence[Computation], starts: Sequence[int], opcodes: frozenset[str]
) -> list[Instruction]:
    """The instructions with one of some opcodes, in text order; `starts` are where the computations' bodies start."""
    rows = list(_printed_rows(data, computations, starts, opcodes))
    found = [
        (index, Instruction(computations[index], row, row.start() + 3, data.find(b"\n", row.end())))
        for index, row in rows
        if computations[index].is_printed
    ]
    for index, computation in enumerate(computations):
        if not computation.is_printed:
            found += [(index, each) for each in computation.instructions if each.opcode in opcodes]
    return [instruction for _, instruction in sorted(found, key=itemgetter(0))]


def _printed_rows(
    data: bytes, computations: Sequence[Computation], starts: Sequence[int], opcodes: frozenset[str]
) -> Iterator[tuple[int, re.Match[bytes]]]:
    """The rows with one of some opcodes, each with the index of its computation.

    On the way it finds the computations that have a line which only starts like an instruction: once their instructions
    are read they count as not printed, and the rows from them are void.
    """
    for row in printed.rows_with(opcodes).finditer(data, starts[0] if starts else len(data)):
        index = bisect_right(starts, row.start()) - 1
        computation = computations[index]
        if row.start() < computation.body_end and computation.is_printed:
            if row[3]:
                yield index, row
            else:
                _ = computation.instructions


def _rows(data: bytes, computations: Sequence[Computation]) -> Rows | None:
    """The rows of all instructions; None if a line in a computation that counts as printed is not one."""
    names: list[str] = []
    kinds: list[tuple[str, str]] = []
    kind_of = _Kinds()
    for stretch in stretches(computations):
        if stretch[0].is_printed:
            for start, end in _blocks(data, stretch[0].body_start, stretch[-1].body_end):
                rows = printed.KINDS.findall(data[start:end].decode("utf-8", "replace"))
                names += map(_FIRST, rows)
                kinds += map(kind_of.__getitem__, map(_SECOND, rows))
        else:
            names += [instruction.name for instruction in stretch[0].instructions]
            kinds += [(instruction.type_text, instruction.opcode) for instruction in stretch[0].instructions]
    return None if "" in kind_of else Rows(names, kinds)


def _blocks(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = data.find(b"\n", start + BLOCK, end)
        stop = end if stop < 0 else stop
        yield start, stop
        start = stop


class _Kinds(dict[str, tuple[str, str]]):
    """`type opcode` as one text → the two; equal texts give the same pair."""

    def __missing__(self, key: str) -> tuple[str, str]:
        type_text, _, opcode = key.rpartition(" ")
        self[key] = type_text, opcode
        return self[key]
