"""What it will cost on the target, by the model, with the formulas and the constants."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ...cost.estimate import Estimate, FunctionCost
from ...report import Collective, Report
from ...units import format_bytes, format_count, format_seconds
from ..collective_rows import axes_text, kind_text
from ..terms import term_text
from .pieces import data, left_out, section, table

MOST = 12
"""Formulas that are listed."""


def cost(report: Report) -> RenderableType | None:
    """The rooflines of the function, and each distinct formula with its numbers."""
    found = report.cost
    if found is None:
        return None
    lines: list[RenderableType] = [Text(roofline_line(found))]
    distinct: dict[tuple[str, str, Estimate], Collective] = {}
    for collective in report.collectives:
        if collective.stage == "hlo" and collective.estimate is not None:
            key = (kind_text(collective), axes_text(collective), collective.estimate)
            distinct.setdefault(key, collective)
    if distinct:
        shown = table("est.", "kind", "axes", "over", "formula", "with", right=("est.",))
        for (kind, axes, estimate), _ in list(distinct.items())[:MOST]:
            numbers = ", ".join(map(term_text, estimate.terms))
            shown.add_row(
                format_seconds(estimate.seconds), *map(data, (kind, axes, estimate.link, estimate.formula, numbers))
            )
        lines += [shown, *left_out(len(distinct) - MOST, "formula"), *_constants(found, list(distinct))]
    least = "at least " if found.at_least else ""
    return section(f"Cost on {found.chip}, by a model: {least}{format_seconds(found.total)} for one run", lines)


def roofline_line(found: FunctionCost) -> str:
    """`compute 1.2 ms (5.5e+11 FLOP) · memory … · communication …, 2 µs not hidden; communication bounds it`."""
    return (
        f"compute {format_seconds(found.compute)} ({format_count(found.flops)} FLOP)"
        f" · memory {format_seconds(found.memory)} ({format_bytes(found.bytes)})"
        f" · communication {format_seconds(found.communication)}, {format_seconds(found.waiting)} of it not hidden"
        f": bound by {found.bound}"
    )


def _constants(found: FunctionCost, distinct: list[tuple[str, str, Estimate]]) -> list[RenderableType]:
    """Where each constant is published."""
    terms = {(term.symbol, term.meaning): term for _, _, estimate in distinct for term in estimate.terms if term.source}
    lines = [f"{term.symbol}: {term.meaning} ({term.source})" for term in terms.values()]
    lines += [f"{name} {format_count(figure.value)} per second ({figure.source})" for name, figure in found.figures]
    return [data(line, "dim") for line in lines]
