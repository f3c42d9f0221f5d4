"""SS07: a sum over devices in each iteration of a loop that adds up."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import replace

from ...dataflow.loops import loops_of
from ...ir.types import types_text
from ...report import Collective, Finding, Fix, Report
from ...report.spelled import over_text
from ...units import format_bytes, known_sum, plural
from ..compiled import at_most, compiled_collectives, is_compiled, on_another_target, place_in_hlo
from ..fixes.after_loop import after_the_loop, like_it, own_gradients, own_operands
from ..fixes.averaged import averaged_once
from ..fixes.calls import call_at
from ..fixes.edits import axes_text, before_the_loop, without_call
from ..rule import Rule, advice, finding, keep_whole


def check(report: Report) -> Iterator[Finding]:
    """For each loop and line, the sums that are only added to what the loop carries, if they run in the loop."""
    for loop in loops_of(report.program):
        summed = [each for each in loop.collectives if loop.accumulated(each) is not None]
        groups: dict[tuple[object, ...], list[Collective]] = {}
        for whole, parts in compiled_collectives(report, summed).items():
            each = _of_parts(whole, parts)
            if each.loops and each.executions != 1:
                groups.setdefault((each.axes or (), each.source.file, each.source.line), []).append(each)
        for group in groups.values() if is_compiled(report) else ():
            yield _found(report, group)


def _of_parts(collective: Collective, parts: Collection[int]) -> Collective:
    """The part of a collective that these results are, less those that it was combined with."""
    if len(parts) == len(collective.part_types) or not parts:
        return collective
    types = tuple(collective.part_types[number] for number in sorted(parts))
    size, whole = known_sum(type.bytes for type in types), known_sum(type.bytes for type in collective.part_types)
    sent = collective.wire_bytes
    less = None if sent is None or size is None or not whole else sent * size // whole
    return replace(collective, result_types=types, bytes_in=size, bytes_out=size, wire_bytes=less, estimate=None)


def _found(report: Report, group: list[Collective]) -> Finding:
    first, axes = group[0], group[0].axes or ()
    along, trips = over_text(first), first.executions
    once = sum(each.wire_bytes or 0 for each in group)
    return finding(
        RULE,
        place_in_hlo(first),
        f"each iteration sums over {along} only to accumulate: sum once, after the loop",
        confidence="proved",
        axes=axes,
        evidence=(
            ("in the loop", ", ".join(f"{each.name} {types_text(each.result_types)}" for each in group[:6])),
            (
                "runs",
                "unknown" if trips is None else f"{plural(trips, 'time')}, {format_bytes(once)} sent per iteration",
            ),
            *on_another_target(report),
        ),
        fixes=_of_a_gather(report, group) or _after_the_loop(report, first) or advice(_fix(first)),
        saves=at_most(*group),
    )


def _of_a_gather(report: Report, group: list[Collective]) -> tuple[Fix, ...]:
    """The gather whose transpose is the sum, before the loop: then its gradient is summed once, after the loop."""
    first = group[0]
    is_transpose = first.origin == "autodiff" and {each.kind for each in group} == {"reduce-scatter"}
    call = call_at(report.program, first.source, ("all_gather",)) if is_transpose else None
    edits = before_the_loop(report.program, call)
    if call is None or not edits:
        return ()
    return (Fix(f"call {ast.unparse(call[1])} before the loop: its gradient is then summed once, after it", edits),)


def _after_the_loop(report: Report, collective: Collective) -> tuple[Fix, ...]:
    """The reduction that the user, or the transpose of a cast, makes in the loop's body, of what the loop adds up."""
    program, axes = report.program, tuple(axis.name for axis in collective.axes or ())
    if collective.origin == "autodiff":
        edits = own_gradients(program, collective.source, axes_text(axes)) if axes else ()
        title = "take the gradient by parameters of each device's own, and call lax.psum once, after the loop"
        if edits or not axes:
            return (Fix(title, edits),) if edits else ()
        over = axes_text(axes)
        return tuple(
            Fix(f"make {name} varying over {over} before the loop: its gradient is then summed once, after it", edits)
            for name, edits in own_operands(program, collective.source, over)
        )
    if collective.origin != "user":
        return averaged_once(report, collective.source, collective.axes or ())
    call = call_at(program, collective.source, ("psum", "pmean"))
    if call is None:
        return ()
    fixes = []
    alike = like_it(program, call)
    for calls in (alike, [call])[len(alike) == 1 :]:
        title = f"call {ast.unparse(call[1].func)} once, after the loop"
        title += f", in place of {len(calls)} calls" if len(calls) > 1 else ""
        titles = (title, f"{title}, and make what it begins with varying")
        fixes += [Fix(each, edits) for each, edits in zip(titles, after_the_loop(program, calls), strict=False)]
    if any(each.origin == "user" and each.axes == collective.axes and not each.loops for each in report.collectives):
        title = f"leave out {ast.unparse(call[1].func)}: after the loop it is called once more"
        fixes.append(Fix(title, without_call(program, call)))
    return tuple(each for each in fixes if each.edits)


def _fix(collective: Collective) -> str:
    axes = collective.axes or ()
    if of_parts := keep_whole(axes):
        return of_parts
    names = tuple(axis.name for axis in axes)
    axis = (repr(names[0]) if len(names) == 1 else repr(names)) if names else "axis"
    after = f"lax.psum the total over {axis} once after the loop"
    if collective.origin == "autodiff":
        return f"make the parameters varying over {axis}, by lax.pcast, and {after}"
    if collective.origin == "user":
        return f"accumulate without reducing, and {after}"
    return f"put the loop in a shard_map over {axis}, in which each device accumulates its own part, and {after}"


RULE = Rule(
    id="SS07",
    slug="reduction-in-accumulation-loop",
    severity="warning",
    finds="A sum over devices in every iteration of a loop that only accumulates the results.",
    why="Sums commute: one sum after the loop, of what each device accumulated, gives the same result with a fraction"
    " of the communication. Gradient accumulation over microbatches is the usual case, and variance types can"
    " cause it: the gradient of an invariant value is invariant.",
    proof="In the partitioner's output, the only use of the sum, up to constant factors, is an addition to a loop carry"
    " that has no other use; and the target's compiler left the sum in the loop.",
    faulty="""def add(total, x):  # params are shared: so is their gradient
    return jax.tree.map(jnp.add, total, jax.grad(loss)(params, x)), None
total, _ = lax.scan(add, zeros, microbatches)""",
    repaired="""own = jax.tree.map(lambda p: lax.pcast(p, "batch", to="varying"), params)
def add(total, x):
    return jax.tree.map(jnp.add, total, jax.grad(loss)(own, x)), None
total, _ = lax.scan(add, zeros, microbatches)
total = lax.psum(total, "batch")""",
    check=check,
    tries="of a gather's transpose, the gather before the statement that contains the loop's body; a psum or pmean that"
    " is written in the body, after the loop; of a sum that the partitioner inserts, the gradient or the scan around it"
    " in a shard_map, averaged once; else, where the loop ends, and what to cast, needs a person's judgement",
)
