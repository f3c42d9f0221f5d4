"""The tables of comparisons: of a diff, of a check, and of several targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...report import Report
from ...report.changes import Diff
from ...report.comparison import CauseRow, Comparison, is_compiled
from ...report.verdict import Verdict
from ...units import format_bytes, format_seconds, plural
from ..change_rows import MAX_ROWS, ChangeRow, amount_rows, change_rows, changes_one_by_one, value_rows
from ..collective_rows import SHORT_PASS, cause_text, total_wire
from ..diff_words import border_name, border_text, finding_text, inside_text
from ..headline import headline
from ..table import Cell, Column, Piece, Role, Row, Table, titled

NOT_COMPILED = "not compiled"

ROLES: dict[str, Role] = {"added": "added", "removed": "removed", "changed": "changed", "regrouped": "aside"}


def diff_tables(found: Diff) -> Sequence[Table]:
    """All that have rows."""
    borders = ((border_name(change), border_text(change)) for change in found.borders)
    tables = (
        communication(found, change_rows(found)),
        _facts("values", "Values of outputs", value_rows(found), "output"),
        _concerns(found),
        _facts("borders", "Arguments and outputs", borders, "sharding"),
        _facts("insides", "Inside the program", map(inside_text, found.insides), "sharding"),
        _facts("amounts", "Memory, time, operations", amount_rows(found), "row"),
    )
    return [table for table in tables if table.rows]


def screen_tables(found: Diff) -> Sequence[Table]:
    """The same, each change that reads otherwise in a row of its own: a row leads to its place in both texts."""
    _, *others = diff_tables(found) if found.changes else (None, *diff_tables(found))
    return [communication(found, changes_one_by_one(found)), *others]


def communication(found: Diff, rows: Iterable[ChangeRow]) -> Table:
    """The collectives that changed; the value of a row are its changes."""
    sides = (found.before, found.after)
    totals = " → ".join(f"{plural(side.count, 'collective')}, {format_bytes(side.total_wire)}" for side in sides)
    same = [Piece(f"the same on both sides: {found.same}", "aside")] if found.same else []
    return Table(
        id="communication",
        title="Communication",
        columns=(
            Column("", 6, 9),
            Column("collective", 16, 8),
            Column("axes", 4, 9),
            Column("per device", 24, 4),
            Column("wire", 6, 7, align="right"),
            Column("pass", 4, 3),
            Column("from", 12, 5),
        ),
        rows=tuple(Row(_change_cells(row), row.changes) for row in rows),
        heading=f"Communication ({found.after.stage}): {totals} per device and run",
        notes=lambda: same,
        most=MAX_ROWS,
        unit="change",
    )


def _change_cells(row: ChangeRow) -> tuple[Cell, ...]:
    role = ROLES[row.kind]
    return (
        Piece(f"{row.sign} {row.numbers}".rstrip(), role),
        Piece(row.what, role),
        row.axes,
        "\n⇒ ".join(row.types),
        row.wire,
        row.direction,
        row.place,
    )


def _concerns(found: Diff) -> Table:
    rows = []
    for change in found.findings:
        what, message = finding_text(change)
        # A finding that came is bad news.
        kind, opposite = ("removed", "added") if change.after is None else ("added", "removed")
        rows.append(Row((Piece(what, ROLES[opposite]), message), kind))
    return Table("concerns", "Findings", titled("", ""), rows=tuple(rows), heading="Findings", most=MAX_ROWS)


def _facts(id: str, title: str, rows: Iterable[tuple[str, str]], unit: str) -> Table:
    columns, cells = titled("", ""), tuple(map(Row, rows))
    return Table(id, title, columns, rows=cells, heading=title, most=MAX_ROWS, unit=unit)


def verdicts_table(verdicts: Sequence[Verdict]) -> Table:
    """All functions that were checked."""
    return Table(
        id="checks",
        title="Checks",
        columns=titled("", "function", ""),
        rows=tuple(Row((word(each), each.name, summary(each)), each) for each in verdicts),
        heading="Checks",
        empty_text="Nothing was checked.",
    )


def budgets_table(verdict: Verdict) -> Table:
    """The budgets that one function exceeds."""
    return Table(
        id="budgets",
        title="Budgets",
        columns=titled("over budget", "there is"),
        rows=tuple(Row((each.budget.text, each.found), each) for each in verdict.broken),
        unit="budget",
    )


def word(verdict: Verdict) -> Piece:
    """`passed`, `failed`."""
    return Piece("passed", "good") if verdict.passed else Piece("failed", "error")


def summary(verdict: Verdict) -> str:
    """`no change in communication (…); 3 budgets hold`."""
    phrases = [] if verdict.changes is None else [headline(verdict.changes)]
    kept = len(verdict.budgets) - len(verdict.broken)
    if verdict.broken:
        phrases.append(f"{plural(len(verdict.broken), 'budget')} of {len(verdict.budgets)} exceeded")
    elif kept:
        phrases.append(f"{plural(kept, 'budget')} kept" if kept > 1 else "the budget is kept")
    return "; ".join(phrases)


def collectives_by_cause(comparison: Comparison) -> Table:
    """Each target's collectives for one cause, one line per kind of collective."""
    return Table(
        id="by-cause",
        title="Collectives by cause",
        columns=(
            Column("from", 12, 5),
            Column("pass", 4, 3),
            Column("axes", 5, 8),
            *(Column(target, max(48 // len(comparison.targets), 12), 7) for target in comparison.targets),
        ),
        rows=tuple(Row(_cause_cells(row, comparison), row) for row in comparison.rows),
        heading="Collectives in the compiled programs" + (", by what causes them" if comparison.rows else ""),
        empty_text="No collectives." if all(map(is_compiled, comparison.reports)) else NOT_COMPILED,
    )


def _cause_cells(row: CauseRow, comparison: Comparison) -> tuple[Cell, ...]:
    cause = row.cause
    place = cause.source or Piece("combined, or not known", "aside")
    cells = (
        "\n".join(cause_text(cell)) if cell else Piece("–" if is_compiled(report) else NOT_COMPILED, "aside")
        for cell, report in zip(row.cells, comparison.reports, strict=True)
    )
    return (place, SHORT_PASS[cause.direction], cause.axes, *cells)


def targets(comparison: Comparison) -> Table:
    """Each target in one line of numbers."""
    titles = ("target", "collectives", "reduce-scatters", "each device sends", "est.", "bound by", "compile")
    pairs = zip(comparison.targets, comparison.reports, strict=True)
    return Table(
        id="targets",
        title="Targets",
        columns=tuple(map(Column, titles)),
        rows=tuple(Row(_totals(target, report), report) for target, report in pairs),
        heading="Targets",
    )


def _totals(target: str, report: Report) -> tuple[str, ...]:
    listed = [c for c in report.collectives if c.stage == "hlo"]
    scattered = sum(c.kind == "reduce-scatter" for c in listed)
    compiled, cost = report.capture.stage("hlo"), report.cost
    estimated = ("", "") if cost is None else (format_seconds(cost.total), cost.bound)
    if compiled is None:
        return (target, "", "", "", *estimated, NOT_COMPILED)
    sent = format_bytes(total_wire(listed))
    return (target, str(len(listed)), str(scattered), sent, *estimated, format_seconds(compiled.seconds))
