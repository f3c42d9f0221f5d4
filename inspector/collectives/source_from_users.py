"""The source position of a collective without one, from the instructions that use its result.

The partitioner gives what it inserts the name of the value that is moved, often an argument's, and no position. What
the moved value is for stands at the instructions that use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from msgspec import field

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.hlo.uses import Uses
from ...parsers.record import Record
from ...parsers.source import Frame
from ..report import Pass, SourcePosition
from ..units import grouped
from .origin import direction_of

MAX_STEPS = 4
"""Steps that are followed through instructions that have no position either: copies, tuples, conversions."""


class UserPositions(Record, frozen=True):
    """The place of the first use that has one, and the pass that all of the nearest uses agree on."""

    source: SourcePosition = field(default_factory=SourcePosition)
    direction: Pass = "unknown"


def users_with_positions(
    module: HloModule, instructions: Iterable[Instruction], *, differentiated: bool
) -> Mapping[Instruction, UserPositions]:
    """The positions of the users of some instructions, by one scan of each computation."""
    found: dict[Instruction, UserPositions] = {}
    for computation, members in by_computation(module, instructions):
        for member, users in _users(computation, members).items():
            found[member] = _positions(users, differentiated, is_combined=_is_combined(member))
    return found


def by_computation(
    module: HloModule, instructions: Iterable[Instruction]
) -> Iterator[tuple[Computation, list[Instruction]]]:
    """Instructions by the computation that they are in."""
    for name, inside in grouped((each.computation.name, each) for each in instructions).items():
        computation = module.computation(name)
        if computation is not None:
            yield computation, inside


def _users(computation: Computation, members: list[Instruction]) -> dict[Instruction, list[Instruction]]:
    reached: dict[Instruction, frozenset[str]] = {member: frozenset({member.name}) for member in members}
    found: dict[Instruction, list[Instruction]] = {}
    uses = Uses(computation)
    for _ in range(MAX_STEPS):
        users = uses.users_of(frozenset().union(*reached.values()))
        farther: dict[Instruction, frozenset[str]] = {}
        for member, names in reached.items():
            near = [user for name in sorted(names) for user in users[name]]
            if placed := [user for user in near if user.frames]:
                found.setdefault(member, []).extend(placed)
            goes_on = not placed or _is_combined(member)
            if onward := [user for user in near if goes_on and not user.frames]:
                farther[member] = frozenset(user.name for user in onward)
        reached = farther
    return found


def _is_combined(member: Instruction) -> bool:
    """True if XLA combined it from several collectives, each with its own purpose."""
    return len(member.operands) > 1


def _positions(users: list[Instruction], differentiated: bool, *, is_combined: bool) -> UserPositions:
    """The first one's position; of what is for several, where all of these are called from."""
    directions = {direction_of(user.op_name, differentiated=differentiated) for user in users}
    frames = _around(users) if is_combined else min(users, key=lambda user: user.span).frames
    source = SourcePosition(frames, "shape") if frames else SourcePosition()
    return UserPositions(source, directions.pop() if len(directions) == 1 else "unknown")


def _around(users: list[Instruction]) -> tuple[Frame, ...]:
    """The frames, innermost first, that all of the stacks end with."""
    levels = zip(*(reversed(user.frames) for user in users), strict=False)
    common = [frames[0] for frames in takewhile(lambda frames: len(set(frames)) == 1, levels)]
    return tuple(reversed(common))
