"""The tables of a report, in the order in which documents print them; those with a key are tabs of the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...report import Report
from ..table import Table
from .captured import arguments, problems, stages
from .collectives import causes, collectives
from .communication import communication, modules
from .cost import cost, memory
from .execution import devices, divergences, live, reference, times
from .findings import findings
from .shardings import shardings, variance
from .timeline import timeline_table

TABLES: tuple[Callable[[Report], Table], ...] = (
    findings,
    divergences,
    communication,
    modules,
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

DETAILS: Mapping[str, Sequence[Callable[[Report], Table]]] = {
    "findings": (findings,),
    "collectives": (modules, collectives, causes),
    "shardings": (shardings, arguments),
    "variance": (variance,),
    "values": (divergences, devices, reference, live),
    "memory": (memory,),
    "times": (cost, timeline_table, times),
    "messages": (problems,),
    "stages": (stages,),
}
"""The sections of a text report that `--details` adds, by name."""
