"""Every operation of a text as a row, without a Python object for each of them.

Of text as printers write it `line_rows.py` takes them from the lines; other text is read operation by operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..garbage import collection_paused
from .line_rows import Kind, kind_of, rows_of_lines
from .operation import operations_in
from .text import MlirText


@dataclass(frozen=True, slots=True)
class Rows:
    """The results of operations as they are written, `%0, %1:2`, and side by side with them their names and types.

    Types are all that is written behind the colon. Iterating gives (results, name, types). Equal pairs of name and
    types are one object, so that a million rows stay small.
    """

    results: list[str]
    kinds: list[Kind]

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        return ((results, *kind) for results, kind in zip(self.results, self.kinds, strict=True))


def read_rows(text: MlirText) -> Rows:
    """The rows of all operations in text order, except those of regions that are not written out."""
    is_printed = text.functions is not None and _starts_lines_only(text.source.data)
    rows = Rows([], [])
    with collection_paused():
        for results, kinds in rows_of_lines(text) if is_printed else _of_operations(text):
            rows.results.extend(results)
            rows.kinds.extend(kinds)
    return rows


def _starts_lines_only(data: bytes) -> bool:
    """Whether no operation starts behind a brace or a block's label, on the same line."""
    label = data.find(b"^")
    while label >= 0:
        end = data.find(b"\n", label)
        if data[label:end].rstrip()[-1:] != b":":
            return False
        label = data.find(b"^", end)
    # Backwards the search takes a third of the time.
    return data.rfind(b"{ ") < 0


def _of_operations(text: MlirText) -> Iterator[tuple[list[str], list[Kind]]]:
    same: dict[Kind, Kind] = {}
    for block in text.outline[0].blocks:
        for outer in operations_in(text, block):
            operations = [operation for operation in outer.walk() if operation.text is text]
            kinds = map(kind_of, operations)
            yield [operation.head.results for operation in operations], [same.setdefault(kind, kind) for kind in kinds]
