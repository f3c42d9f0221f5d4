"""What a run will cost on the target, by the model, with the formulas and the constants."""

from __future__ import annotations

from collections.abc import Iterable

from ...collectives.spelled import axes_text, kind_text
from ...report import Collective, Report
from ...report.cost import Estimate, FunctionCost
from ...units import format_bytes, format_count, format_seconds
from ..table import Column, Piece, Row, Table
from ..terms import term_text


def cost(report: Report) -> Table:
    """The rooflines of the function, and each distinct formula with its numbers."""
    found = report.cost
    distinct: dict[tuple[str, str, Estimate], Collective] = {}
    for each in () if found is None else report.collectives:
        if each.stage == "hlo" and each.estimate is not None:
            distinct.setdefault((kind_text(each), axes_text(each), each.estimate), each)
    estimates = [estimate for _, _, estimate in distinct]
    return Table(
        id="cost",
        title="Cost",
        columns=(
            Column("est.", align="right"),
            Column("kind"),
            Column("axes"),
            Column("over"),
            Column("formula"),
            Column("with"),
        ),
        rows=tuple(_row(*key, collective) for key, collective in distinct.items()),
        heading="" if found is None else _heading(found),
        above=() if found is None else (roofline_line(found),),
        notes=lambda: [] if found is None or not estimates else _constants(found, estimates),
        most=12,
        unit="formula",
    )


def _heading(found: FunctionCost) -> str:
    least = "at least " if found.at_least else ""
    return f"Cost on {found.chip}, by a model: {least}{format_seconds(found.total)} for one run"


def _row(kind: str, axes: str, estimate: Estimate, value: object) -> Row:
    numbers = ", ".join(map(term_text, estimate.terms))
    return Row((format_seconds(estimate.seconds), kind, axes, estimate.link, estimate.formula, numbers), value)


def roofline_line(found: FunctionCost) -> str:
    """`compute 1.2 ms (5.5e+11 FLOP) · memory … · communication …, 2 µs not hidden; communication bounds it`."""
    return (
        f"compute {format_seconds(found.compute)} ({format_count(found.flops)} FLOP)"
        f" · memory {format_seconds(found.memory)} ({format_bytes(found.bytes)})"
        f" · communication {format_seconds(found.communication)}, {format_seconds(found.waiting)} of it not hidden"
        f": bound by {found.bound}"
    )


def _constants(found: FunctionCost, estimates: Iterable[Estimate]) -> Iterable[Piece]:
    """Where each constant is published."""
    terms = {(term.symbol, term.meaning): term for estimate in estimates for term in estimate.terms if term.source}
    lines = [f"{term.symbol}: {term.meaning} ({term.source})" for term in terms.values()]
    lines += [f"{name} {format_count(figure.value)} per second ({figure.source})" for name, figure in found.figures]
    return [Piece(line, "aside") for line in lines]
