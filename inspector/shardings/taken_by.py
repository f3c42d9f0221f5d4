"""The operations that take the result of a collective, and that make its operands, by the text of the program."""

from __future__ import annotations

from ..dataflow.meaning import SAME, Does
from ..dataflow.sources import Place, value_flow
from ..dataflow.walks import forward
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
    flow = value_flow(stage)
    start = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or start is None:
        return frozenset()
    reach = forward(flow.flow, flow.values(Place(start)), HANDED_ON, carried=True, limit=MAX_VISITED)
    return frozenset(number for end in reach.ends for number in tags_in(stage, end.instruction.span))


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
