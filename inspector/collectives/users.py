"""Facts about collectives by the instructions that use their results, where a compiler leaves names and lines out.

The partitioner gives what it inserts the name of the value that is moved, often an argument's, and no position. A
weight that the backward pass gathers again has the name that it has in the forward pass. What the moved value is for
stands at the instructions that use it.

Some versions of XLA name what the partitioner inserts after the value that is moved, others after the operation that it
is moved for. What goes into the partitioner decides: where the operand of a constraint, or of an explicit reshard, is
sharded otherwise than that, it has to be moved there, whatever else uses it.

GPUs' compiler sums several arrays as one vector: it flattens and concatenates them, and cuts the result up again. The
vector has neither name nor line, or those of one of them. Its pieces have: each is brought back into its shape by an
instruction that was given the name and the line of the collective that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from msgspec import field

from ...parsers.errors import readable
from ...parsers.hlo import ArrayShape, HloModule, Instruction
from ...parsers.hlo.graph import Uses
from ...parsers.hlo.types import leaves
from ...parsers.record import Record
from ...parsers.source import Frame
from ..catalog.spellings import DONES, RESHARDING, SDY_REQUESTS
from ..correspondence.numbers import tags_at, tags_in
from ..dataflow.meaning import SAME, Does, does
from ..ir.def_use import forward
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from ..report import WRITTEN, Collective, CollectivePart, Pass, SourcePosition
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
    """The positions of the users of some instructions; nothing for one of whose users none has a position."""
    found = {}
    for member in instructions:
        if users := _users_of(module, member):
            found[member] = _positions(users, differentiated, is_combined=_is_combined(member))
    return found


def _users_of(module: HloModule, member: Instruction) -> list[Instruction]:
    found: list[Instruction] = []
    reached = [member]
    for _ in range(MAX_STEPS):
        near = dict.fromkeys(user for each in reached for user in module.graph.takers(each))
        placed = [user for user in near if user.frames]
        found += placed
        if placed and not _is_combined(member):
            break
        reached = [user for user in near if not user.frames]
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


RESHARDS = SAME | Does.REPEAT | Does.SLICE | Does.PLACE | Does.SEND
"""Classes of which the partitioner makes one resharding; a select chooses between what was sent and what was kept."""

MAX_MOVES = 8


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
    for member in moved:
        passes = _passes(module, member, differentiated)
        if len(passes) == 1 and (only := passes.pop()) != "unknown":
            served[member.computation.name, member.name] = only
    return served


def _passes(module: HloModule, member: Instruction, differentiated: bool) -> set[Pass]:
    found = set[Pass]()
    reached = [member]
    for step in range(MAX_MOVES):
        near = dict.fromkeys(user for each in reached for user in module.graph.takers(each))
        reached = []
        for user in near:
            is_moved = user.opcode == "select" or does(user.opcode) in RESHARDS
            if step + 1 < MAX_MOVES and is_moved and user.op_name in (None, "", member.op_name):
                reached.append(user)
            else:
                found.add(direction_of(user.op_name, differentiated=differentiated))
    return found


MAX_CHANGES = 8
"""Instructions in a row that the partitioner makes of one change of a sharding."""


def requests_served(
    partitioned: ParsedStage, before: ParsedStage, stablehlo: ParsedStage, found: Iterable[Collective]
) -> Mapping[str, tuple[int, ...]]:
    """The numbers of the requests that collectives out of the partitioner serve, by the collectives' names."""
    moving = {each.name for each in found if each.kind in RESHARDING and each.origin not in WRITTEN}
    requests = _moving_requests(before, stablehlo) if moving else frozenset()
    if not requests or partitioned.hlo is None:
        return {}
    instructions = [each for each in partitioned.hlo.with_opcode(RESHARDING) if each.name in moving]
    served = {}
    for member in instructions:
        if numbers := tuple(_numbers_after(partitioned, member, requests)):
            served[member.name] = numbers
    return served


def _numbers_after(partitioned: ParsedStage, start: Instruction, requests: frozenset[int]) -> Iterator[int]:
    """The numbers of the nearest requests that use what a collective made."""
    own = set(tags_in(partitioned, start.span))

    def passes(user: Instruction) -> bool:
        return set(tags_in(partitioned, user.span)) <= own

    for users in forward(Uses(start.computation), (start.name,), MAX_CHANGES, passes):
        reached = (number for each in users.values() for user in each for number in tags_in(partitioned, user.span))
        if numbers := dict.fromkeys(number for number in reached if number in requests):
            yield from numbers
            return


@derived
def _moving_requests(before: ParsedStage, stablehlo: ParsedStage) -> frozenset[int]:
    """The numbers of the requests for a sharding that their operands do not have when they go into the partitioner."""
    requested = _requests(stablehlo)
    copies = [] if before.hlo is None or not requested else before.hlo.with_opcode({"copy"})
    return frozenset(
        number for copy in copies for number in tags_in(before, copy.span) if number in requested and _changes(copy)
    )


def _changes(copy: Instruction) -> bool:
    operand = copy.computation.instruction(copy.operands[0]) if copy.operands else None
    return operand is not None and readable(lambda: operand.sharding) != readable(lambda: copy.sharding)


@derived
def _requests(stablehlo: ParsedStage) -> frozenset[int]:
    if stablehlo.mlir is None or not any(name.encode() in stablehlo.source.data for name in SDY_REQUESTS):
        return frozenset()
    lines = (stablehlo.source.line_around(each.span.end - 1) for each in stablehlo.mlir.operations(SDY_REQUESTS))
    return frozenset(number for line in lines for number in tags_at(stablehlo, line))


MAX_PIECE_STEPS = 4
"""Steps from the vector to its pieces: the done half of an asynchronous collective, the slice, the reshape."""


def is_joined(module: HloModule, instruction: Instruction) -> bool:
    """True of a vector that the compiler concatenated: what the user concatenates has a name."""
    if not _is_vector(instruction):
        return False
    made = instruction.computation.instruction(instruction.operands[0])
    if made is not None and made.opcode == "fusion" and not made.frames:
        called = module.graph.called(made, "calls")
        made = None if called is None else called.root
    if made is None or made.opcode != "concatenate" or made.frames or made.op_name:
        return False
    return len(made.operands) > 1


def parts_of(
    module: HloModule, instructions: Iterable[Instruction]
) -> Mapping[Instruction, tuple[CollectivePart, ...]]:
    """The pieces of instructions without a name of their own, in text order; nothing for one that is whole."""
    found = {}
    for member in filter(_is_vector, instructions):
        pieces = _pieces(module, member)
        if len(pieces) > 1:
            found[member] = tuple(map(_part, sorted(pieces, key=lambda piece: piece.span)))
    return found


def _pieces(module: HloModule, member: Instruction) -> list[Instruction]:
    """The instructions that bring a piece into its shape; of a piece that is a vector itself, the one that cuts it."""
    found: list[Instruction] = []
    reached = [member]
    for _ in range(MAX_PIECE_STEPS):
        farther: list[Instruction] = []
        for instruction in reached:
            users = module.graph.takers(instruction)
            shaped = [user for user in users if does(user.opcode) is Does.RESHAPE and user.frames]
            onward = [user for user in users if not user.frames or user.opcode in DONES]
            is_cut = does(instruction.opcode) in Does.SLICE | Does.CALL
            is_piece = not shaped and not onward and is_cut and _is_vector(instruction)
            found += [instruction] if is_piece else shaped
            farther += onward
        reached = list(dict.fromkeys(farther))
    return found


def _is_vector(instruction: Instruction) -> bool:
    """True of one array along one dimension; the start of an asynchronous sum has the type of its operand too."""
    one = len(instruction.operands) == 1
    return one and all(isinstance(each, ArrayShape) and len(each.dims) == 1 for each in leaves(instruction.type))


def _part(instruction: Instruction) -> CollectivePart:
    return CollectivePart(
        type=array_type(instruction.type),
        source=SourcePosition.exact(instruction.frames),
        op_name=instruction.op_name,
        span=instruction.span,
    )
