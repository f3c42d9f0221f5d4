"""The operations that take the result of a collective, and that make its operands, by the text of the program."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataflow.hlo import HloUse, HloValue
from ..dataflow.meaning import SAME, Does
from ..dataflow.sources import Place, value_flow
from ..dataflow.walks import Reach, forward
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..links.operation_ids import tags_in
from ..report import Collective

HANDED_ON = SAME | Does.SEND
"""Operations that hand on a value, to other devices or in another layout."""

MAX_VISITED = 60
"""Values that are followed from one collective."""


@derived
def taken_by(stage: ParsedStage, collective: Collective) -> frozenset[int]:
    """Return the numbers of the operations that take a collective's result, by whatever hands it on."""
    reach = _reach(stage, collective)
    return (
        frozenset()
        if reach is None
        else frozenset(number for end in reach.ends for number in tags_in(stage, end.instruction.span))
    )


@derived
def outputs_of(stage: ParsedStage, collective: Collective) -> Sequence[int]:
    """The numbers of the program's outputs that a collective's result becomes, by whatever hands it on."""
    reach = _reach(stage, collective)
    return () if reach is None else sorted({output.path[0] if output.path else 0 for output in reach.outputs})


def _reach(stage: ParsedStage, collective: Collective) -> Reach[HloValue, HloUse] | None:
    flow = value_flow(stage)
    start = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or start is None:
        return None
    return forward(flow.flow, flow.values(Place(start)), HANDED_ON, carried=True, limit=MAX_VISITED)


@derived
def around(stage: ParsedStage, collective: Collective) -> frozenset[int]:
    """Return the numbers of the operations that a collective comes from, that take its result, or make its operands.

    Those that hand a value on, and those that are applied to each of the operand's elements, are among them.
    """
    flow = value_flow(stage)
    start = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or start is None:
        return frozenset()
    found = [start]
    for value in flow.values(Place(start)):
        reach = forward(flow.flow, [value], HANDED_ON, carried=True)
        found += [value.instruction for value in reach.values] + [end.instruction for end in reach.ends]
    for operand in (*flow.operands(start), Place(start)):
        found += [source.instruction for source in flow.walk(operand)]
    return frozenset(number for one in dict.fromkeys(found) for number in tags_in(stage, one.span))
