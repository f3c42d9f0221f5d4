"""SS25: a reduction over devices in each iteration of a loop that only stacks the results."""

from __future__ import annotations

from collections.abc import Iterator

from ...dataflow.loops import loops_of
from ...ir.types import types_text
from ...report import Collective, Finding, Report
from ...report.spelled import over_text
from ...units import plural
from ..compiled import at_most, on_another_target, place_in_hlo, wholly_compiled
from ..rule import Rule, advice, finding

MAX_BYTES = 1 << 16


def check(report: Report) -> Iterator[Finding]:
    """For each loop and line, the all-reduces of which the results are stacked, if they run in the loop."""
    for loop in loops_of(report.program):
        stacked = [each for each in loop.collectives if loop.stacked(each) is not None]
        groups: dict[tuple[object, ...], list[Collective]] = {}
        for each in wholly_compiled(report, stacked):
            # Large ones take their time wherever they are, and overlap with work in the loop.
            is_small = (each.bytes_in or 0) <= report.thresholds.get(RULE.id, MAX_BYTES)
            is_in_loop = bool(each.loops) and each.executions != 1 and each.direction != "backward"
            if each.kind == "all-reduce" and is_small and is_in_loop:
                groups.setdefault((each.axes, each.source.file, each.source.line), []).append(each)
        for group in groups.values():
            yield _found(report, group)


def _found(report: Report, group: list[Collective]) -> Finding:
    first, trips = group[0], group[0].executions
    runs = "unknown" if trips is None else plural(trips, "time")
    return finding(
        RULE,
        place_in_hlo(first),
        f"a loop only stacks what it reduces over {over_text(first)}: reduce once, after the loop",
        confidence="proved",
        axes=first.axes or (),
        evidence=(
            ("in the loop", ", ".join(f"{each.name} {types_text(each.result_types)}" for each in group[:6])),
            ("runs", f"{runs}, and nothing in the loop uses the result"),
            *on_another_target(report),
        ),
        fixes=advice("stack each device's values in a shard_map, and reduce the stack once after the loop"),
        saves=at_most(*group),
    )


RULE = Rule(
    id="SS25",
    slug="stacked-reduction-in-loop",
    severity="warning",
    finds="A reduction over devices in every iteration of a loop that only stacks the results.",
    why="Every iteration waits for a small all-reduce. One all-reduce of the stacked values, after the loop, sends"
    " the same bytes and waits once. Statistics that are logged for each layer are the usual case.",
    proof="In the partitioner's output, the only use of the result, elementwise, is to be written into an array that"
    " nothing in the loop reads; and the target's compiler left the reduction in the loop. Gradients of a backward"
    " pass are not reported.",
    faulty="""def layer(x, w):  # x is P("batch")
    return jnp.tanh(x @ w), jnp.mean(x)
x, means = lax.scan(layer, x, ws)""",
    repaired="""def layer(x, w):  # in a shard_map over "batch"
    return jnp.tanh(x @ w), jnp.mean(x)
x, means = lax.scan(layer, x, ws)
means = lax.pmean(means, "batch")""",
    check=check,
    threshold=MAX_BYTES,
    threshold_is="maximum bytes of one all-reduce",
    by_hand="what each device should stack before the reduction needs a person's judgement",
)
