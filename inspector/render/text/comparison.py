"""Several targets side by side."""

from __future__ import annotations

from rich.console import Console

from ...diff.targets import Comparison
from ..subject_line import subject_line
from ..tables.comparison import collectives_by_cause, targets
from .messages import failure
from .pieces import data
from .tables import table_section


def print_comparison(comparison: Comparison, console: Console) -> None:
    """What was captured for each target, what went wrong, and the table."""
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        if (why := failure(report)) is None:
            console.print(subject_line(report))
        else:
            console.print(data(f"{target}:"))
            console.print(why)
    console.print()
    console.print(table_section(collectives_by_cause(comparison)))
    console.print()
    console.print(table_section(targets(comparison)))
