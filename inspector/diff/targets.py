"""One function on several targets: the collectives of the compiled programs, those of one cause in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..findings.support.used_blocks import with_other_targets
from ..report import Collective, Report
from ..report.comparison import COMPILED, Cause, CauseRow, Comparison
from ..report.spelled import argument_of, axes_text, source_text


def compare(targets: Sequence[str], reports: Sequence[Report]) -> Comparison:
    """Put reports side by side.

    Rows are in the order in which a cause is first met. Collectives that a compiler combined, and so left without a
    line, stand in rows of their own at the end.
    """
    cells: dict[Cause, list[list[Collective]]] = {}
    for number, report in enumerate(reports):
        for collective in (each for each in report.collectives if each.stage == COMPILED):
            row = cells.setdefault(_cause(collective, report), [[] for _ in reports])
            row[number].append(collective)
    ordered = sorted(cells.items(), key=lambda item: not item[0].source)
    rows = tuple(CauseRow(cause, tuple(map(tuple, row))) for cause, row in ordered)
    return Comparison(tuple(targets), with_other_targets(targets, reports), rows)


def _cause(collective: Collective, report: Report) -> Cause:
    """The cause of a collective, or of its largest part: what one target combines, another may not."""
    if known := [part for part in collective.parts if part.source.frame is not None]:
        most = min(known, key=lambda part: (-(part.type.bytes or 0), part.source.file or "", part.source.line or 0))
        collective = replace(collective, source=most.source, direction=most.direction, origin=most.origin)
    source = source_text(collective, report) or argument_of(collective) or ""
    return Cause(source, collective.direction if source else "unknown", axes_text(collective))
