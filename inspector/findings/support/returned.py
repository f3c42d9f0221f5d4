"""All-reduced results of a program that are returned replicated, and the sharded arguments that they are like."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ....parsers.record import Record
from ....parsers.sharding_syntax.mesh import AxisRef
from ...dataflow.graph import Output
from ...dataflow.hlo import HloFlow, HloUse, HloValue, hlo_flow
from ...dataflow.meaning import POINTWISE, SAME, Does
from ...dataflow.walks import Ends
from ...ir.array_sharding import ArraySharding
from ...ir.name_scopes import Leaf, counterparts
from ...report import Collective, Report, ShardedValue
from .compiled import in_hlo
from .used_blocks import results_of

USED_IN_BLOCKS = Does.REDUCE | Does.SLICE
"""Classes of operations that a block of the sum would do for: a norm needs one more sum, of a single number."""


class ReturnedSum(Record, frozen=True):
    """A replicated result that is computed elementwise from a sum over axes that shard an argument like it."""

    collective: Collective
    output: ShardedValue
    argument: ShardedValue
    sharding: ArraySharding
    """The argument's."""

    def is_block(self, summed: Set[AxisRef]) -> bool:
        """Return whether the argument is sharded over all axes of the sum, and the result over none of them."""
        own = self.output.sharding
        return own is not None and summed <= set(self.sharding.sharded) and summed.isdisjoint(own.sharded)


def returned_sums(report: Report) -> Iterator[ReturnedSum]:
    """Yield the results that need only a block of a sum on each device, if they were sharded as their arguments are."""
    arguments, outputs = (
        [value for value in report.shardings if value.role == role] for role in ("argument", "output")
    )
    sums = [each for each in in_hlo(report, "all-reduce") if each.axes and not each.loops]
    stage = report.program.stage(sums[0].stage) if sums and outputs else None
    flow = None if stage is None else hlo_flow(stage)
    if flow is None:
        return
    alike = counterparts(*([Leaf(each.name, each.type) for each in values] for values in (arguments, outputs)))
    sharded = {
        number: (argument, sharding)
        for number, choices in alike.items()
        if (found := _sharded_alike([arguments[each] for each in choices])) is not None
        for argument, sharding in (found,)
    }

    def described(use: HloUse | Output | None) -> list[int]:
        """The number of a result; -1 for what needs all of a sum on one device, or is unknown."""
        if isinstance(use, Output):
            return [use.path[0] if use.path else 0]
        return [-1] if use is None or flow.does(use) not in USED_IN_BLOCKS else []

    ends = Ends(flow, SAME | POINTWISE, described, decisive=(-1,))
    for collective in sums if sharded else ():
        summed = set(collective.axes or ())
        for value in _results(flow, collective):
            numbers = ends.of(value)
            if numbers <= sharded.keys():
                returned = [ReturnedSum(collective, outputs[each], *sharded[each]) for each in sorted(numbers)]
                if all(each.is_block(summed) for each in returned):
                    yield from returned


def _sharded_alike(arguments: list[ShardedValue]) -> tuple[ShardedValue, ArraySharding] | None:
    """The first of several arguments that a result may be like, if all of them are sharded alike."""
    shardings = {each.sharding for each in arguments}
    sharding = shardings.pop() if len(shardings) == 1 else None
    return None if sharding is None else (arguments[0], sharding)


def _results(flow: HloFlow, collective: Collective) -> Iterator[HloValue]:
    """The arrays that a collective gives; no single numbers."""
    instruction = flow.module.instruction(collective.computation, collective.name)
    values = () if instruction is None else results_of(instruction, collective)
    yield from (
        (value for value, type in zip(values, collective.result_types, strict=True) if type.elements not in (None, 1))
        if values
        else ()
    )
