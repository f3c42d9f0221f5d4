"""Collectives that a sharding constraint, or an explicit reshard, asks for.

Some versions of XLA name what the partitioner inserts after the value that is moved, others after the operation that it
is moved for. What goes into the partitioner decides: where the operand of a constraint is sharded otherwise than the
constraint, it has to be moved there, whatever else uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...parsers.errors import readable
from ...parsers.hlo import Instruction
from ...parsers.hlo.uses import Uses
from ..catalog.spellings import RESHARDING, SDY_REQUESTS
from ..ir.def_use import forward
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..links.operation_ids import tags_at, tags_in
from ..report import WRITTEN, Collective
from .source_from_users import by_computation

MAX_STEPS = 8
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
    for computation, members in by_computation(partitioned.hlo, instructions):
        uses = Uses(computation)
        for member in members:
            if numbers := tuple(_numbers_after(partitioned, uses, member, requests)):
                served[member.name] = numbers
    return served


def _numbers_after(partitioned: ParsedStage, uses: Uses, start: Instruction, requests: frozenset[int]) -> Iterator[int]:
    """The numbers of the nearest requests that use what a collective made."""
    own = set(tags_in(partitioned, start.span))

    def passes(user: Instruction) -> bool:
        return set(tags_in(partitioned, user.span)) <= own

    for users in forward(uses, (start.name,), MAX_STEPS, passes):
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
