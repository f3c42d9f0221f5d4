"""How many operations of each name are in a text.

In a text as printers write it each operation starts a line, and one pattern passes over all lines. Other text is
counted operation by operation.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from .operation import operations_in
from .patterns import HEAD, NAMED, WORD, for_bytes
from .text import MlirText

_LINE = (
    rf"(?:\A|\n) *+(?:%[{WORD}\-:]*+ = (?!%)|(?:\t[ \t]*+)?+(?=[%\"]|{NAMED}))"
    rf'([A-Za-z_][{WORD}]*+|"[{WORD}\-]++"(?=\()|{HEAD})[^\n]*+'
)
"""A line with the name of its operation, or with all that it starts with, where a printer does not write it so."""


def opcode_counts(text: MlirText) -> Counter[str]:
    """How many operations there are of each name, without those of regions that are not written out."""
    data = text.source.data
    if text.functions is None or not _starts_lines_only(data):
        outermost = chain.from_iterable(operations_in(text, block) for block in text.outline[0].blocks)
        inside = chain.from_iterable(operation.walk() for operation in outermost)
        return Counter(operation.name for operation in inside if operation.text is text)
    found: Counter[str] = Counter()
    for head, count in Counter(match[1] for match in for_bytes(_LINE).finditer(data)).items():
        found[head.rpartition(b"=")[2].strip().strip(b'"').decode()] += count
    return found


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
