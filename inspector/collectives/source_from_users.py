"""Where a collective without a source position comes from, found from the instructions that use its result.

The partitioner gives what it inserts the name of the value that is moved, often an argument's, and no position. What
the moved value is for stands at the instructions that use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.hlo.uses import Uses
from ..report import Pass, SourcePosition
from .origin import direction_of

MAX_STEPS = 4
"""Steps that are followed through instructions that have no position either: copies, tuples, conversions."""


@dataclass(frozen=True, slots=True)
class UserPositions:
    """The place of the first use that has one, and the pass that all of the nearest uses agree on."""

    source: SourcePosition = field(default_factory=SourcePosition)
    direction: Pass = "unknown"


def users_with_positions(
    module: HloModule, instructions: Iterable[Instruction], *, differentiated: bool
) -> Mapping[Instruction, UserPositions]:
    """The positions of the users of some instructions, by one scan of each computation."""
    found: dict[Instruction, UserPositions] = {}
    for computation, members in by_computation(module, instructions):
        found |= {m: _positions(users, differentiated) for m, users in _users(computation, members).items()}
    return found


def by_computation(
    module: HloModule, instructions: Iterable[Instruction]
) -> Iterator[tuple[Computation, list[Instruction]]]:
    """Instructions by the computation that they are in."""
    members: dict[str, list[Instruction]] = {}
    for instruction in instructions:
        members.setdefault(instruction.computation.name, []).append(instruction)
    for name, inside in members.items():
        computation = module.computation(name)
        if computation is not None:
            yield computation, inside


def _users(computation: Computation, members: list[Instruction]) -> dict[Instruction, list[Instruction]]:
    """For each member the nearest users that have a source position."""
    reached: dict[Instruction, frozenset[str]] = {member: frozenset({member.name}) for member in members}
    found: dict[Instruction, list[Instruction]] = {}
    uses = Uses(computation)
    for _ in range(MAX_STEPS):
        users = uses.users_of(frozenset().union(*reached.values()))
        farther: dict[Instruction, frozenset[str]] = {}
        for member, names in reached.items():
            near = [user for name in sorted(names) for user in users[name]]
            placed = [user for user in near if user.frames]
            if placed:
                found[member] = placed
            elif near:
                farther[member] = frozenset(user.name for user in near)
        reached = farther
        if not reached:
            break
    return found


def _positions(users: list[Instruction], differentiated: bool) -> UserPositions:
    directions = {direction_of(user.op_name, differentiated=differentiated) for user in users}
    first = min(users, key=lambda user: user.span)
    return UserPositions(SourcePosition(first.frames, "shape"), directions.pop() if len(directions) == 1 else "unknown")
