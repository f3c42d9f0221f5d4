"""The tables of the report that are tabs of the screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..inspector.capture.model import Capture
from ..inspector.ir.program import Program
from ..inspector.render.table import Table
from ..inspector.render.tables import TABLES
from ..inspector.report import Report

_NOTHING = Report(Program(Capture()))

EMPTY: Mapping[str, Table] = {
    table.id: table for table in sorted((make(_NOTHING) for make in TABLES), key=lambda table: table.key) if table.key
}
"""Each without rows, in the order of their tabs."""

_MADE: Mapping[str, Callable[[Report], Table]] = {make(_NOTHING).id: make for make in TABLES}

OWN = ("collectives", "shardings")
"""Tables with a pane of their own, which fills them as the user chooses."""


def tab_tables(report: Report, *, early: bool = False) -> Mapping[str, Table]:
    """The tables of a report; only those that need no analysis, if they are wanted `early`: others may take long."""
    return {name: _MADE[name](report) for name in EMPTY if name not in OWN and (EMPTY[name].early or not early)}
