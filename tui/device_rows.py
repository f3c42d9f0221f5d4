"""The rows of the table of values that were looked at while the program ran."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from ..inspector.report import ProbedValue, Report
from .columns import Column
from .pieces import axes_content, data
from .row_table import Row

DEVICES = (
    Column("when", 6, 7),
    Column("primitive", 8, 6),
    Column("over", 4, 5),
    Column("iteration", 4, 4),
    Column("value", 4, 3),
    Column("type", 10, 2),
    Column("devices", 9, 8),
    Column("from", 8, 1),
)


def device_rows(report: Report, hues: Mapping[str, str]) -> list[Row]:
    """Each value once, before and after its equation and in each iteration."""
    parting = {(found.equation, found.value) for found in report.divergences if found.is_first}
    return [Row(number, _cells(value, hues, parting, report.script)) for number, value in enumerate(report.probes)]


def _cells(
    value: ProbedValue, hues: Mapping[str, str], parting: set[tuple[str, str]], script: str | None
) -> tuple[Content, ...]:
    probe = value.probe
    different = len({shard.digest for shard in probe.shards})
    alike = "all equal" if different == 1 else f"{different} values"
    wrong = bool(probe.path) and (probe.path[-1], value.name) in parting
    return (
        data(probe.when),
        data(value.primitive),
        axes_content(value.axes, hues),
        data(", ".join(map(str, probe.iteration))),
        data(value.name),
        data(probe.type),
        Content.styled(alike, "bold $error" if wrong else "$aside" if different == 1 else ""),
        data(value.source.function_text(script)),
    )
