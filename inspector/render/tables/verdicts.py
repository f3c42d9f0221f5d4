"""The tables of a check: which functions passed, and what is over budget."""

from __future__ import annotations

from collections.abc import Sequence

from ...check.verdict import Verdict
from ...diff.headline import headline
from ...units import plural
from ..table import Column, Piece, Row, Table


def verdicts_table(verdicts: Sequence[Verdict]) -> Table:
    """All functions that were checked."""
    return Table(
        id="checks",
        title="Checks",
        columns=(Column(""), Column("function"), Column("")),
        rows=tuple(Row((word(each), each.name, summary(each)), each) for each in verdicts),
        heading="Checks",
        empty_text="Nothing was checked.",
    )


def budgets_table(verdict: Verdict) -> Table:
    """The budgets that one function exceeds."""
    return Table(
        id="budgets",
        title="Budgets",
        columns=(Column("over budget"), Column("there is")),
        rows=tuple(Row((each.budget.text, each.found), each) for each in verdict.broken),
        unit="budget",
    )


def word(verdict: Verdict) -> Piece:
    """`passed`, `FAILED`."""
    return Piece("passed", "good") if verdict.passed else Piece("FAILED", "error")


def summary(verdict: Verdict) -> str:
    """`no change in communication (…); 3 budgets hold`."""
    told = [] if verdict.changes is None else [headline(verdict.changes)]
    kept = len(verdict.budgets) - len(verdict.broken)
    if verdict.broken:
        told.append(f"{plural(len(verdict.broken), 'budget')} of {len(verdict.budgets)} exceeded")
    elif kept:
        told.append(f"{plural(kept, 'budget')} kept" if kept > 1 else "the budget is kept")
    return "; ".join(told)
