"""The table of a script's programs beside the one that is shown."""

from __future__ import annotations

import os

from ...report import Report
from ...units import format_bytes, plural
from ..table import Column, Row, Table


def other_programs(report: Report) -> Table:
    """Each with the line that made JAX compile it, and its calls; the costliest first."""
    rows = tuple(
        Row(
            (
                each.name,
                "" if each.call is None else f"{os.path.basename(each.call.file)}:{each.call.line}",
                plural(each.calls, "call"),
                f"collectives of {format_bytes(each.bytes)}" if each.bytes else "no collectives",
            ),
            each,
        )
        for each in report.capture.others
    )
    return Table(
        id="programs",
        title="Programs",
        columns=(Column("program", 10, 3), Column("from", 10, 2), Column("calls", 6, 1), Column("per call", 10, 1)),
        rows=rows,
        heading="Other programs of the script" if rows else "",
        empty_text="",
        most=8,
        unit="program",
    )
