"""The Report as one reads it in a terminal, or pastes it into an issue.

Each file of this folder is a section or two; a section is a function that gives None when there is nothing to say.
"""

from __future__ import annotations

from rich.console import Console

from ...report import Report
from ..subject_line import subject_line
from .causes import causes
from .collectives import collectives
from .cost import cost
from .devices import devices, divergences
from .explanation import explanation
from .findings import findings
from .live import execution, memory
from .messages import failure, messages, problems
from .reference import reference
from .shardings import shardings
from .stages import stages
from .times import times
from .values import values
from .variance import variance

SECTIONS = (
    failure,
    explanation,
    findings,
    divergences,
    collectives,
    causes,
    cost,
    shardings,
    values,
    variance,
    devices,
    reference,
    memory,
    execution,
    times,
    messages,
    problems,
    stages,
)
"""In the order in which they are printed."""


def print_report(report: Report, console: Console) -> None:
    """Print all sections that have something to say."""
    console.print(subject_line(report))
    for section in SECTIONS:
        shown = section(report)
        if shown is not None:
            console.print()
            console.print(shown)
