"""SS27: a rotation in a loop whose last result is unused, and two permutations in a row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ....parsers.hlo import Instruction
from ...dataflow.loops import Loop, loops_of
from ...dataflow.meaning import ELEMENTWISE
from ...dataflow.walks import forward
from ...ir.jaxpr_text import EquationPlace
from ...ir.types import types_text
from ...report import Collective, Finding, Fix, Report
from ...report.spelled import over_text
from ..compiled import at_most, certainty, compiled_as, compiled_to, in_hlo, is_compiled, place_in_hlo, wholly_compiled
from ..equations import At, Flow, axis_sizes, devices_along, equations_of, is_alone, permutation_of
from ..fixes.calls import call_at
from ..fixes.edits import permutation_text, together, with_permutation, without_call
from ..fixes.last_iteration import apart
from ..rule import Rule, finding

MAX_TRIPS = 64
"""Iterations of which the last one's permutation is worth a finding."""


def check(report: Report) -> Iterator[Finding]:
    """Yield the permutations of what loops carry where nothing uses that at the end, and those in a row."""
    for loop in loops_of(report.program):
        wasted = [each for each in loop.collectives if _is_wasted(loop, each)]
        there = [each for each in wholly_compiled(report, wasted) if each.loops and each.kind == "collective-permute"]
        trips = {each.executions for each in there}
        if len(trips) == 1 and 1 < (trips.pop() or 0) <= MAX_TRIPS:
            yield _found(report, there)
    for flow, place in equations_of(report, ("ppermute",)):
        yield from _in_a_row(report, flow, place)


def _in_a_row(report: Report, flow: Flow, place: EquationPlace) -> Iterator[Finding]:
    """Yield two permutations of all devices where only the second one uses the result of the first."""
    axes, ends = place.equation.axes or (), _next(flow, place)
    size = devices_along(axes, axis_sizes(report, flow, place))
    if len(ends) != 1 or size is None:
        return
    first, second, *third = (_destinations(each, size) for each in (place, *ends, *_next(flow, ends[0])))
    if first is None or second is None:
        return
    both = [second[device] for device in first]
    nothing = list(range(size))
    if both == nothing or any(each is not None and [each[device] for device in second] == nothing for each in third):
        return  # SS14: one takes another one back
    type = place.equation.outputs[0].type.array
    compiled = [compiled_as(report, flow, each, "collective-permute", type) for each in (place, ends[0])]
    if is_compiled(report) and not _are_two(report, compiled):
        return
    calls = [call_at(report.program, flow.source(each), ("ppermute",)) for each in (place, ends[0])]
    text = permutation_text(both)
    edits = (with_permutation(calls[0], text), without_call(report.program, calls[1]))
    is_written = all(edits) and calls[0] != calls[1]
    yield finding(
        RULE,
        flow.place(place),
        f"{type} is permuted over {', '.join(axes)} twice in a row: one permutation is enough",
        confidence=certainty(compiled[0]),
        axes=axes,
        related=(flow.place(ends[0]),),
        evidence=(compiled_to(compiled[0], ", and another"), ("time", "on a torus, a longer route takes longer")),
        fixes=(Fix(f"permute once, by {text}", together(*edits) if is_written else ()),),
        saves=at_most(compiled[0]),
    )


def _next(flow: Flow, place: EquationPlace) -> list[EquationPlace]:
    """The permutations over the same axes that alone use the result of one."""
    axes = place.equation.axes or ()
    reach = forward(flow, [At(place.jaxpr, place.equation.outputs[0].name)], ELEMENTWISE, keeps=partial(is_alone, flow))
    is_next = reach.is_all and all(_permutes(use.place, axes) for use in reach.ends)
    return list(dict.fromkeys(use.place for use in reach.ends)) if is_next else []


def _are_two(report: Report, compiled: list[Collective | None]) -> bool:
    """Return whether two permutations were compiled to two: of one line, as many as that there."""
    one, other = compiled
    if one is None or other is None or one is not other:
        return one is not None and other is not None
    lines = [(each.source.file, each.source.line) for each in in_hlo(report, "collective-permute")]
    return lines.count((one.source.file, one.source.line)) > 1


def _permutes(place: EquationPlace, axes: tuple[str, ...]) -> bool:
    return place.equation.primitive == "ppermute" and place.equation.axes == axes


def _destinations(place: EquationPlace, size: int) -> list[int] | None:
    """Return where each of so many devices sends to; None of what is no permutation of all of them."""
    pairs = dict(permutation_of(place.equation))
    found = [pairs.get(device, -1) for device in range(size)]
    return found if sorted(found) == list(range(size)) and len(pairs) == size else None


def _is_wasted(loop: Loop, permutation: Instruction) -> bool:
    index = loop.rotated(permutation)
    return index is not None and loop.is_discarded(index)


def _found(report: Report, there: list[Collective]) -> Finding:
    first, trips = there[0], there[0].executions or 0
    return finding(
        RULE,
        place_in_hlo(first),
        f"nothing uses the last of {trips} permutations over {over_text(first)}: {trips - 1} are enough",
        confidence="proved",
        axes=first.axes or (),
        evidence=(
            ("in the loop", ", ".join(f"{each.name} {types_text(each.result_types)}" for each in there[:6])),
            ("after the loop", "nothing uses the permuted value"),
        ),
        fixes=(
            Fix(
                f"run {trips - 1} iterations, and the work of the last one after the loop",
                apart(report.program, first.source),
            ),
        ),
        saves=at_most(*there),
    )


RULE = Rule(
    id="SS27",
    slug="discarded-permute",
    severity="warning",
    finds="A ring in a loop with one permutation too many: nothing uses what the last one moves. Or two permutations in"
    " a row, where one is enough.",
    why="A ring over n devices needs n - 1 permutations. A loop of n iterations makes n, and the last one takes as"
    " long as the others.",
    proof="In the partitioner's output, the loop carries a value that each iteration permutes, and nothing uses it"
    " after the loop; the compiled program permutes in each iteration. For loops of at most 64 iterations."
    " In a row: every device sends once and receives once, with only elementwise operations in between, and the"
    " compiled program has both.",
    faulty="""def step(i, carry):
    total, x = carry
    return total + f(x), lax.ppermute(x, "x", ring)
total, _ = lax.fori_loop(0, n, step, (zeros, x))""",
    repaired="""def step(i, carry):
    total, x = carry
    return total + f(x), lax.ppermute(x, "x", ring)
total, last = lax.fori_loop(0, n - 1, step, (zeros, x))
total = total + f(last)""",
    check=check,
    tries="one permutation in place of two in a row; the last iteration of a loop behind it",
)
