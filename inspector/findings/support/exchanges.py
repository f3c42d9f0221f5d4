"""Exchanges between devices of which others over the same devices are all that comes afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....parsers.hlo import Instruction
from ....parsers.record import Record
from ...collectives.context import context_of
from ...collectives.stage import collectives_in_context
from ...dataflow.hlo import HloFlow, hlo_flow
from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...report import WRITTEN, Collective, Report
from .compiled_from import compiled_collectives
from .used_blocks import results_of

KINDS = ("all-to-all", "collective-permute")


class Exchanges(Record, frozen=True):
    """A compiled exchange, and those over the same devices that take it back."""

    first: Collective
    again: tuple[Collective, ...]

    @property
    def is_written(self) -> bool:
        """True if none of them was inserted by the partitioner."""
        return all(each.origin in WRITTEN for each in (self.first, *self.again))


def exchanged_twice(report: Report) -> Iterator[Exchanges]:
    """The exchanges of the partitioner's output that are followed by their inverse, as far as they are compiled."""
    stage = report.program.stage("hlo-spmd")
    flow = None if stage is None else hlo_flow(stage)
    if stage is None or flow is None:
        return
    found: dict[int, tuple[Instruction, Collective]] = {}
    for each in collectives_in_context(stage, context_of(report.program)):
        instruction = flow.module.instruction(each.computation, each.name) if each.kind in KINDS else None
        if instruction is not None:
            found[instruction.start] = instruction, each
    after = {start: _next(flow, *pair, found) for start, pair in found.items()}
    for start, (instruction, exchange) in found.items():
        behind = after[start] if exchange.origin in WRITTEN else _behind(after, start)
        back = [found[each] for each in behind if _is_taken_back(exchange, found[each][1])]
        first = next(iter(compiled_collectives(report, [instruction])), None) if back else None
        again = tuple(c for c in compiled_collectives(report, [each for each, _ in back]) if c is not first)
        if first is not None and again:
            yield Exchanges(first, again)


def _next(
    flow: HloFlow, instruction: Instruction, collective: Collective, found: Mapping[int, object]
) -> tuple[int, ...]:
    """The exchanges that are all that becomes of one's result, element by element; none where that is not so."""
    reach = forward(flow, results_of(instruction, collective), ELEMENTWISE | Does.RESHAPE)
    starts = tuple(dict.fromkeys(use.instruction.start for use in reach.ends))
    return starts if reach.is_all and all(start in found for start in starts) else ()


def _behind(after: Mapping[int, tuple[int, ...]], start: int) -> Iterator[int]:
    waiting = list(after[start])
    for each in waiting:
        yield each
        waiting += [other for other in after[each] if other not in waiting]


def _is_taken_back(one: Collective, other: Collective) -> bool:
    """Return whether two exchanges are over the same groups, or permutations that are each other's inverse."""
    if one is other or one.kind != other.kind:
        return False
    if one.kind == "all-to-all":
        return set(map(frozenset, one.groups)) == set(map(frozenset, other.groups))
    everyone = {device for device, _ in one.pairs}
    inverse = {(target, source) for source, target in other.pairs}
    # Of two devices, a ring's next step takes back the one before.
    is_ring_of_two = one.origin in WRITTEN and set(one.pairs) == set(other.pairs)
    return inverse == set(one.pairs) and everyone == {device for _, device in one.pairs} and not is_ring_of_two
