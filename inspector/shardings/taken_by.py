"""The operations that take the result of a collective, by the text of the compiled or the partitioned program."""

from __future__ import annotations

from collections.abc import Iterator

from ...parsers.hlo import Instruction
from ...parsers.hlo.graph import Graph
from ..dataflow.meaning import SAME, Does, does
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..links.operation_ids import tags_in
from ..report import Collective

HANDED_ON = SAME | Does.SEND
"""Operations that hand on a value, to other devices or in another layout."""

MAX_VISITED = 60
"""Instructions that are followed from one collective."""


@derived
def taken_by(stage: ParsedStage, collective: Collective) -> frozenset[int]:
    """Return the numbers of the operations that take a collective's result, by whatever hands it on."""
    start = None if stage.hlo is None else stage.hlo.instruction(collective.computation, collective.name)
    if stage.hlo is None or start is None:
        return frozenset()
    found: set[int] = set()
    waiting, seen = [start], {start}
    while waiting and len(seen) < MAX_VISITED:
        one = waiting.pop()
        outside = [each for each in stage.hlo.graph.becomes(one) if each not in seen]
        seen.update(outside)
        waiting += outside
        for user in _users(stage.hlo.graph, one):
            if user in seen:
                continue
            seen.add(user)
            if user.opcode == "parameter" or not does(user.opcode) & ~HANDED_ON:
                waiting.append(user)
            else:
                found.update(tags_in(stage, user.span))
    return frozenset(found)


def _users(graph: Graph, instruction: Instruction) -> Iterator[Instruction]:
    """The users of a result, inside of what is fused."""
    takers, elements = graph.users(instruction)
    yield from (user for users in elements.values() for user in users)
    for user, position in takers:
        if user.opcode in ("fusion", "call"):
            entered = [parameter for parameter in graph.entered(user, position) if parameter is not None]
            yield from entered or [user]
        else:
            yield user
