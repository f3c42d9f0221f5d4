"""The tables of a report, in the order in which documents print them; those with a key are tabs of the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...report import Report
from ..table import Table
from .captured import arguments, problems, stages
from .collectives import causes, collectives
from .communication import axes, communication, modules
from .cost import cost, memory
from .device_values import devices, divergences
from .execution import live, times
from .findings import findings
from .passes import passes
from .reference import reference
from .shardings import shardings, variance
from .timeline import timeline_table
from .value_sites import value_sites

TABLES: Mapping[Callable[[Report], Table], str] = {
    findings: "findings",
    divergences: "values",
    axes: "",
    communication: "",
    timeline_table: "times",
    modules: "collectives",
    collectives: "collectives",
    causes: "collectives",
    cost: "times",
    shardings: "shardings",
    arguments: "shardings",
    variance: "variance",
    devices: "values",
    value_sites: "",
    reference: "values",
    memory: "memory",
    live: "values",
    times: "times",
    problems: "messages",
    passes: "passes",
    stages: "stages",
}
"""Each with the section of a text report, one of `SECTIONS`, that it is in; without one it is always there."""


def tables_in(section: str) -> Sequence[Callable[[Report], Table]]:
    """The tables of a section that `--details` adds."""
    return [table for table, name in TABLES.items() if name == section]
