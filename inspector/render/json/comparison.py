"""Several targets side by side, as `shardscope.comparison/1`."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct, field

from ...diff import targets
from .report import Report, report_of


class Row(Struct, frozen=True):
    """What each target does for one cause: for each report, in their order, positions in its `collectives`."""

    source: str
    axes: str
    cells: list[list[int]]
    direction: Literal["forward", "backward", "recompute", "unknown"] = field(name="pass")


class Comparison(Struct, frozen=True):
    """The reports of one function on several targets."""

    schema: Literal["shardscope.comparison/1"]
    targets: list[str]
    rows: list[Row]
    reports: list[Report]


def comparison_to_json(comparison: targets.Comparison, indent: int = 2) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    positions = [{c: n for n, c in enumerate(report.collectives)} for report in comparison.reports]
    document = Comparison(
        schema="shardscope.comparison/1",
        targets=list(comparison.targets),
        rows=[
            Row(
                row.cause.source,
                row.cause.axes,
                [[known[c] for c in cell] for known, cell in zip(positions, row.cells, strict=True)],
                row.cause.direction,
            )
            for row in comparison.rows
        ],
        reports=list(map(report_of, comparison.reports)),
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=indent) + b"\n"
