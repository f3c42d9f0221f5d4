"""The tables of a report, in the order in which documents print them; those with a key are tabs of the screen."""

from __future__ import annotations

from collections.abc import Callable

from ...report import Report
from ..table import Table
from .captured import arguments, problems, stages
from .collectives import causes, collectives
from .cost import cost, memory
from .execution import devices, divergences, live, reference, times
from .findings import findings
from .shardings import shardings, variance

TABLES: tuple[Callable[[Report], Table], ...] = (
    findings,
    divergences,
    collectives,
    causes,
    cost,
    shardings,
    arguments,
    variance,
    devices,
    reference,
    memory,
    live,
    times,
    problems,
    stages,
)
