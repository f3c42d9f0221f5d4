"""Arguments and outputs."""

from __future__ import annotations

from collections.abc import Iterable

from ...capture.model import Value
from ...report import Report
from ...units import plural
from ..table import Column, Piece, Row, Table

MOST = 12
"""Arguments, and outputs, that a document lists."""


def arguments(report: Report) -> Table:
    """Each by its path, with its type and the sharding that was asked for."""
    capture = report.capture
    sides = {"in": capture.arguments, "out": capture.outputs}
    rows = [_row(side, value, number) for side, values in sides.items() for number, value in enumerate(values)]
    return Table(
        id="values",
        title="Arguments & outputs",
        key="a",
        columns=(
            Column("", 3, 1, where="screen"),
            Column("value", 10, 5),
            Column("type", 10, 4),
            Column("sharding", 12, 3),
        ),
        rows=tuple(rows),
        heading="Arguments and outputs" if rows else "",
        empty_text="A dump does not tell them." if capture.subject is None else "The function has none.",
        notes=lambda: _left_out(capture.arguments, capture.outputs),
        early=True,
    )


def _row(side: str, value: Value, number: int) -> Row:
    spec = Piece(value.spec) if value.spec else Piece("not asked for", "aside")
    sharding = (spec, Piece(", donated", "warning")) if value.donated else spec
    return Row((Piece(side, "aside"), value.path, value.type, sharding), value, number >= MOST)


def _left_out(inputs: tuple[Value, ...], outputs: tuple[Value, ...]) -> Iterable[Piece]:
    for values, word in ((inputs, "argument"), (outputs, "output")):
        if len(values) > MOST:
            yield Piece(f"and {plural(len(values) - MOST, f'more {word}')}", "aside")
