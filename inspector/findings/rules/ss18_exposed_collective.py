"""SS18: time in which a device does nothing but wait for others, while it has other work."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Collective, Finding, Report
from ...report.cost import FunctionCost
from ...units import format_seconds
from ..compiled import in_hlo, place_in_hlo
from ..rule import Rule, Saving, advice, finding

MIN_WAITING_S = 1e-4
"""Seconds in one run that are worth telling."""

MIN_WAITING_SHARE = 0.25
"""Minimum share of a run's time."""


def check(report: Report) -> Iterator[Finding]:
    """One finding for a program that waits for a good part of its time: where most of that goes."""
    cost = report.cost
    if (
        cost is None
        or _spared(cost) < report.thresholds.get(RULE.id, MIN_WAITING_S)
        or cost.waiting < MIN_WAITING_SHARE * cost.total
    ):
        return
    timed = [(seconds, each) for each in in_hlo(report) if (seconds := each.step_seconds)]
    if timed:
        yield _found(cost, sorted(timed, key=lambda pair: -pair[0]))


def _spared(cost: FunctionCost) -> float:
    """Return the waiting time that can be hidden: at most the time of other work that can run meanwhile."""
    return min(cost.waiting, cost.total - cost.waiting)


def _found(cost: FunctionCost, timed: list[tuple[float, Collective]]) -> Finding:
    worst = timed[0][1]
    axes = tuple(dict.fromkeys(axis.name for axis in worst.axes or ()))
    at_least = "at least " if cost.at_least else ""
    how = "overlaps with nothing" if not worst.is_async else "overlaps with too little"
    return finding(
        RULE,
        place_in_hlo(worst),
        f"{at_least}{format_seconds(cost.waiting)} of {format_seconds(cost.total)} are spent waiting:"
        f" the {worst.kind} over {', '.join(axes) or '?'} {how}",
        confidence="likely",
        axes=axes,
        evidence=(
            ("compute", format_seconds(cost.compute)),
            ("memory", format_seconds(cost.memory)),
            *(
                (each.name, f"{format_seconds(seconds)}, {'asynchronous' if each.is_async else 'synchronous'}")
                for seconds, each in timed[:6]
            ),
        ),
        fixes=advice(
            "overlap it: communicate in pieces while others are computed (sample matmul_all_gather:overlapped),"
            " start independent work first, or send less"
        ),
        saves=Saving(None, _spared(cost)),
    )


RULE = Rule(
    id="SS18",
    slug="exposed-collective",
    severity="info",
    finds="A program that waits for communication for a quarter of its time or more.",
    why="Communication without concurrent computation adds its full time to the step. A synchronous collective"
    " overlaps with nothing; an asynchronous one overlaps with what is scheduled between its start and its done.",
    proof="The cost model follows the target's own schedule. Reported from 100 µs of waiting per run that other work"
    " could fill; without such work there is nothing to fix. There are no figures for CPUs, so they are not"
    " judged.",
    faulty='return a @ lax.all_gather(b, "x", tiled=True)  # nothing to do until all of b is there',
    repaired="""for step in range(parts):  # each part of b travels on beside the product with it
    total += part_of(a, step) @ b
    b = lax.ppermute(b, "x", ring)""",
    check=check,
    by_hand="overlapping needs another algorithm",
    threshold=MIN_WAITING_S,
    threshold_is="seconds of waiting per run that other work could fill",
)
