"""SS08: the same communication in every iteration of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....parsers.hlo import Instruction
from ...catalog.spellings import functions_of
from ...dataflow.loops import Loop, loops_of
from ...ir.types import types_text
from ...report import WRITTEN, Collective, Finding, Fix, Report
from ...report.spelled import over_text
from ...units import format_bytes, plural
from ..compiled import at_most, on_another_target, place_in_hlo, wholly_compiled
from ..fixes.calls import call_at
from ..fixes.edits import before_the_loop
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """Each collective of a loop on what does not change in it: still there, or hoisted with what that holds."""
    seen = set()
    for loop in loops_of(report.program):
        invariant = [each for each in loop.collectives if _is_invariant(loop, each)]
        for there in wholly_compiled(report, invariant):
            if there not in seen and there.executions != 1:
                seen.add(there)
                yield _repeated(report, there)
            elif there not in seen and there.kind == "all-gather" and not there.loops:
                seen.add(there)
                yield _hoisted(there)


def _is_invariant(loop: Loop, instruction: Instruction) -> bool:
    operands = loop.operands(instruction)
    return bool(operands) and all(map(loop.is_invariant, operands))


def _repeated(report: Report, found: Collective) -> Finding:
    trips = found.executions
    call = call_at(report.program, found.source, set(functions_of())) if found.origin in WRITTEN else None
    here = f"the {found.kind}" if call is None else ast.unparse(call[1])
    fix = Fix("constrain the operand, before the loop, to the sharding that the loop needs")
    if found.origin in WRITTEN:
        fix = Fix(f"call {here} before the loop, and pass in its result", before_the_loop(report.program, call))
    return finding(
        RULE,
        place_in_hlo(found),
        f"each iteration repeats the same {found.kind} over {over_text(found)}: its operand does not change",
        subject=found.kind,
        confidence="proved",
        axes=found.axes or (),
        evidence=(
            ("operand", "computed from loop carries that do not change"),
            ("runs", "unknown" if trips is None else f"{plural(trips, 'time')}, {format_bytes(found.wire_bytes)} each"),
            *on_another_target(report),
        ),
        fixes=(fix,),
        saves=at_most(found),
    )


def _hoisted(found: Collective) -> Finding:
    return finding(
        RULE,
        place_in_hlo(found),
        f"{found.kind} over {over_text(found)} was moved before its loop: its"
        f" {format_bytes(found.bytes_out)} stay allocated throughout",
        subject=found.kind,
        severity="info",
        confidence="proved",
        axes=found.axes or (),
        evidence=(("held", f"{types_text(found.result_types)} through the loop"),),
        fixes=advice("if memory is short, gather in each iteration only what it needs, such as one layer's part"),
    )


RULE = Rule(
    id="SS08",
    slug="loop-invariant-collective",
    severity="warning",
    finds="A collective in a loop whose operand is the same in every iteration.",
    why="The same bytes are sent in each iteration. Moving the collective out of the loop costs memory: the result is"
    " alive until the loop ends.",
    proof="In the partitioner's output, the operand is computed from loop carries that do not change. `warning` if the"
    " compiled program has the collective in the loop, `info` if the compiler moved it out.",
    faulty="""def step(h, _):
    return jnp.tanh(h @ lax.all_gather(w, "x", tiled=True)), None
h, _ = lax.scan(step, h, None, 10)""",
    repaired="""whole = lax.all_gather(w, "x", tiled=True)
h, _ = lax.scan(lambda h, _: (jnp.tanh(h @ whole), None), h, None, 10)""",
    check=check,
    tries="the call before the statement that contains the loop's body",
)
