"""SS27: a rotation in a loop, of which the last one's result is thrown away."""

from __future__ import annotations

from collections.abc import Iterator

from ....parsers.hlo import Instruction
from ...collectives.spelled import over_text
from ...ir.types import types_text
from ...report import Collective, Finding, Report
from ..rule import Rule, advice, finding
from ..support.compiled import place_in_hlo, saving
from ..support.compiled_from import compiled_collectives
from ..support.hlo_loops import Loop, loops_of

PERMUTATIONS = ("collective-permute", "collective-permute-start")

MAX_TRIPS = 64
"""Iterations of which the last one's permutation is worth a finding."""


def check(report: Report) -> Iterator[Finding]:
    """For each loop, the permutations of what it carries where nothing uses that at the end."""
    for loop in loops_of(report.program):
        wasted = [each for each in loop.collectives if each.opcode in PERMUTATIONS and _is_wasted(loop, each)]
        there = [
            each for each in compiled_collectives(report, wasted) if each.loops and each.kind == "collective-permute"
        ]
        trips = {each.executions for each in there}
        if len(trips) == 1 and 1 < (trips.pop() or 0) <= MAX_TRIPS:
            yield _found(there)


def _is_wasted(loop: Loop, permutation: Instruction) -> bool:
    index = loop.rotated(permutation)
    return index is not None and loop.is_discarded(index)


def _found(there: list[Collective]) -> Finding:
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
        fixes=advice(f"run {trips - 1} iterations, and the work of the last one after the loop"),
        saves=saving(*there),
    )


RULE = Rule(
    id="SS27",
    slug="discarded-permute",
    severity="warning",
    finds="A ring in a loop with one permutation too many: nothing uses what the last one moves.",
    why="A ring over n devices needs n - 1 permutations. A loop of n iterations makes n, and the last one takes as"
    " long as the others.",
    proof="In the partitioner's output, the loop carries a value that each iteration permutes, and nothing uses it"
    " after the loop; the compiled program permutes in each iteration. For loops of at most 64 iterations.",
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
    by_hand="the work of the last iteration has to be written a second time",
)
