"""SS26: a vmapped while loop that goes on, on all devices, until the last element of the batch is done."""

from __future__ import annotations

from collections.abc import Iterator

from ....parsers.hlo import Instruction
from ...dataflow.loops import PASSING, Loop, loops_of
from ...report import Collective, Finding, Report
from ...report.spelled import over_text
from ..compiled import compiled_collectives, place_in_hlo
from ..fixes.batched import in_shard_maps
from ..rule import Rule, alternatives, finding

MAX_STEPS = 100
"""Operations that are followed: in a damaged text they may go in a circle."""


def check(report: Report) -> Iterator[Finding]:
    """The loops whose condition is a reduction over devices that JAX's batching of the predicate made."""
    for loop in loops_of(report.program):
        reduction = _reduction(loop)
        for each in () if reduction is None else compiled_collectives(report, (reduction,)):
            yield _found(report, each)


def _reduction(loop: Loop) -> Instruction | None:
    """The all-reduce that gives a loop's condition, where JAX reduces a batch of predicates: outside of `cond`."""
    names = loop.instruction.callees.get("condition", ())
    condition = loop.module.computation(names[0]) if len(names) == 1 else None
    root = None if condition is None else condition.root
    for _ in range(MAX_STEPS):
        if condition is None or root is None or root.opcode not in PASSING or not root.references:
            break
        root = condition.instruction(root.references[0].name)
    if root is None or root.opcode != "all-reduce" or root.metadata is None:
        return None
    return root if (root.metadata.op_name or "").rpartition("/")[2] == "while" else None


def _found(report: Report, there: Collective) -> Finding:
    over = over_text(there)
    axes = ", ".join(repr(axis.name) for axis in there.axes or ()) or "the axis of the batch"
    return finding(
        RULE,
        place_in_hlo(there),
        f"each iteration of a vmapped while loop waits for an all-reduce of its predicate over {over}",
        confidence="proved",
        axes=there.axes or (),
        evidence=(("condition", f"{there.name}: true while any element of the batch, on any device, is unfinished"),),
        fixes=alternatives(
            f"call the vmapped function in a shard_map over {axes}: each device stops when its own elements are done",
            in_shard_maps(report.program, there.axes or ()),
        ),
    )


RULE = Rule(
    id="SS26",
    slug="vmapped-while-predicate",
    severity="warning",
    finds="A vmapped while loop over a sharded batch: its predicate is reduced over all devices in each iteration.",
    why="vmap makes one loop of all: it runs until the last element is done. With a sharded batch, each iteration"
    " waits for all devices, although the elements are independent.",
    proof="In the partitioner's output, the loop's condition is an all-reduce of the value that JAX's batching rule"
    " reduces, and the compiled program has it.",
    faulty="jax.vmap(solve)(x)  # solve has a while_loop; x is P('batch')",
    repaired="""each_its_own = jax.shard_map(jax.vmap(solve), mesh=mesh, in_specs=P("batch"), out_specs=P("batch"))
each_its_own(x)""",
    check=check,
    tries="each vmap in a shard_map over the axes of its batch",
)
