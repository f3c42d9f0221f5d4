"""The Report as one reads it in a terminal, or pastes it into an issue.

What a table of it has in a cell or two, some sections spell out instead: they give None when there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console, RenderableType

from ...report import Report
from ..subject_line import subject_line
from ..tables import TABLES
from .devices import devices
from .findings import causes, explanation, failure, findings, messages, unreadable
from .tables import table_section

Section = Callable[[Report], RenderableType | None]

FIRST: Sequence[Section] = (failure, explanation)

IN_FULL: Mapping[str, Sequence[Section]] = {
    "findings": (findings,),
    "causes": (causes,),
    "devices": (devices,),
    "problems": (messages, unreadable),
}
"""What is printed in place of a table, by the name of its function."""


def print_report(report: Report, console: Console) -> None:
    """Print everything that has something to say."""
    console.print(subject_line(report))
    shown = [section(report) for section in FIRST]
    for table in TABLES:
        if (sections := IN_FULL.get(table.__name__)) is not None:
            shown += [section(report) for section in sections]
        else:
            shown.append(table_section(table(report)))
    for part in shown:
        if part is not None:
            console.print()
            console.print(part)
