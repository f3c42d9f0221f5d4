"""The pass that a moved value is for, by the instructions that use it.

The partitioner gives what it inserts the name of the value that is moved: a weight that the backward pass gathers again
has the name that it has in the forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...parsers.hlo import Instruction
from ...parsers.hlo.uses import Uses
from ..catalog.spellings import RESHARDING
from ..dataflow.meaning import SAME, Does, does
from ..ir.stage import ParsedStage
from ..report import Collective, Pass
from .origin import direction_of
from .source_from_users import by_computation

RESHARDS = SAME | Does.REPEAT | Does.SLICE | Does.PLACE | Does.SEND
"""Classes of which the partitioner makes one resharding; a select chooses between what was sent and what was kept."""

MAX_STEPS = 8


def passes_served(
    stage: ParsedStage, collectives: Iterable[Collective], *, differentiated: bool
) -> Mapping[tuple[str, str], Pass]:
    """The pass that all users of a moved value agree on, by computation and name; nothing where they do not."""
    module = stage.hlo
    if module is None:
        return {}
    moved = [
        found
        for each in collectives
        if each.kind in RESHARDING and (found := module.instruction(each.computation, each.name)) is not None
    ]
    served: dict[tuple[str, str], Pass] = {}
    for computation, members in by_computation(module, moved):
        uses = Uses(computation)
        for member, passes in _passes(uses, members, differentiated).items():
            if len(passes) == 1 and (only := next(iter(passes))) != "unknown":
                served[computation.name, member.name] = only
    return served


def _passes(uses: Uses, members: list[Instruction], differentiated: bool) -> Mapping[Instruction, set[Pass]]:
    found: dict[Instruction, set[Pass]] = {member: set() for member in members}
    reached = {member: {member.name} for member in members}
    for step in range(MAX_STEPS):
        users = uses.users_of(frozenset().union(*reached.values()))
        farther: dict[Instruction, set[str]] = {}
        for member, names in reached.items():
            for user in (user for name in sorted(names) for user in users[name]):
                is_moved = user.opcode == "select" or does(user.opcode) in RESHARDS
                if step + 1 < MAX_STEPS and is_moved and user.op_name in (None, "", member.op_name):
                    farther.setdefault(member, set()).add(user.name)
                else:
                    found[member].add(direction_of(user.op_name, differentiated=differentiated))
        reached = farther
    return found
