"""The tables of a report, in the order in which documents print them; those with a key are tabs of the screen."""

from __future__ import annotations

from collections.abc import Callable

from ...report import Report
from ..table import Table
from .arguments import arguments
from .causes import causes
from .collectives import collectives
from .cost import cost
from .devices import devices
from .divergences import divergences
from .findings import findings
from .live import live
from .memory import memory
from .problems import problems
from .reference import reference
from .shardings import shardings
from .stages import stages
from .times import times
from .variance import variance

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
