"""One function on several targets: the collectives of the compiled programs, those of one cause in one row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...parsers.sharding_syntax.mesh import AxisRef
from ..findings.blocks import used_in_blocks
from ..findings.compiled import in_hlo
from ..report import Collective, Finding, Report
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


def with_other_targets(targets: Sequence[str], reports: Sequence[Report]) -> tuple[Report, ...]:
    """Reports of one function with what other targets' compilers make of sums that are not reduce-scattered."""
    return tuple(
        replace(
            report,
            findings=tuple(
                replace(found, evidence=(*found.evidence, *_on_others(found, number, targets, reports)))
                if found.rule == "SS01"
                else found
                for found in report.findings
            ),
        )
        for number, report in enumerate(reports)
    )


def _on_others(
    found: Finding, number: int, targets: Sequence[str], reports: Sequence[Report]
) -> Iterator[tuple[str, str]]:
    for other, (target, report) in enumerate(zip(targets, reports, strict=True)):
        if other == number or not report.capture.complete:
            continue
        scattered = sum(
            len(each.result_types) for each in in_hlo(report, "reduce-scatter") if _is_over(found.axes, each)
        )
        used = used_in_blocks(report, "all-reduce")
        left = sum(len(each.types) for each in used if _is_over(found.axes, each.collective))
        if scattered or left:
            rest = f", {left} all-reduced of which blocks are used" if left else ""
            yield f"on {target}", f"{scattered or 'none'} reduce-scattered{rest}"


def _is_over(axes: Iterable[AxisRef], collective: Collective) -> bool:
    return collective.axes is not None and set(collective.axes) == set(axes)
