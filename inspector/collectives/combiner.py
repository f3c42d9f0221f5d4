"""The operands of a collective that XLA combined from several by concatenating them.

GPUs' compiler sums small arrays as one vector: it flattens and concatenates them, and cuts the result up again. The
vector has neither name nor line. Its pieces have: each is brought back into its shape by an instruction that was given
the name and the line of the collective that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...parsers.hlo import ArrayShape, Computation, HloModule, Instruction
from ...parsers.hlo.uses import Uses
from ..ir.types import array_type
from ..report import CollectivePart, SourcePosition
from .source_from_users import by_computation

MAX_STEPS = 4
"""Steps from the vector to its pieces: the done half of an asynchronous collective, the slice, the reshape."""

RESHAPES = ("bitcast", "reshape")
CUTS = ("fusion", "slice")


def parts_of(
    module: HloModule, instructions: Iterable[Instruction]
) -> Mapping[Instruction, tuple[CollectivePart, ...]]:
    """The pieces of each of some nameless instructions, in text order; nothing for one that is whole."""
    found: dict[Instruction, tuple[CollectivePart, ...]] = {}
    for computation, members in by_computation(module, filter(_is_vector, instructions)):
        for member, pieces in _pieces(computation, members).items():
            if len(pieces) > 1:
                found[member] = tuple(map(_part, sorted(pieces, key=lambda piece: piece.span)))
    return found


def _pieces(computation: Computation, members: list[Instruction]) -> dict[Instruction, list[Instruction]]:
    """The instructions that bring a piece into its shape; of a piece that is a vector itself, the one that cuts it."""
    found: dict[Instruction, list[Instruction]] = {member: [] for member in members}
    reached = {member.name: (member, member) for member in members}
    uses = Uses(computation)
    for _ in range(MAX_STEPS):
        users = uses.users_of(reached)
        farther: dict[str, tuple[Instruction, Instruction]] = {}
        for name, (member, instruction) in reached.items():
            shaped = [user for user in users[name] if user.opcode in RESHAPES and user.frames]
            found[member] += shaped
            onward = [user for user in users[name] if not user.frames]
            farther |= {user.name: (member, user) for user in onward}
            if not shaped and not onward and instruction.opcode in CUTS and _is_vector(instruction):
                found[member].append(instruction)
        reached = farther
    return found


def _is_vector(instruction: Instruction) -> bool:
    return isinstance(instruction.type, ArrayShape) and len(instruction.type.dims) == 1


def _part(instruction: Instruction) -> CollectivePart:
    return CollectivePart(
        type=array_type(instruction.type),
        source=SourcePosition.exact(instruction.frames),
        op_name=instruction.op_name,
    )
