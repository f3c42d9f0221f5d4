"""SS14: a value that is exchanged between devices, and then as before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....parsers.hlo import Instruction
from ....parsers.record import Record
from ...catalog.spellings import EXCHANGES, functions_of
from ...collectives.context import context_of
from ...collectives.stage import collectives_in_context
from ...dataflow.hlo import HloFlow, hlo_flow
from ...dataflow.meaning import ELEMENTWISE, Does
from ...dataflow.walks import forward
from ...report import WRITTEN, Collective, Finding, Fix, Report
from ...shardings.collective_causes import causes_of
from ..compiled import at_most, compiled_collectives, compiled_to, in_hlo, place_in_hlo, results_of
from ..fixes.calls import call_to_leave_out
from ..fixes.constraints import without_constraints
from ..fixes.edits import together, without_call
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """The exchanges that others over the same devices follow, those with the same fixes together."""
    groups: dict[object, list[Exchanges]] = {}
    for each in exchanged_twice(report):
        groups.setdefault((each.first.source, _fixes(report, each)), []).append(each)
    for group in groups.values():
        yield _found(report, group)


def _fixes(report: Report, twice: Exchanges) -> tuple[Fix, ...]:
    if not twice.is_written:
        return without_constraints(report, twice.first) or advice("make the shardings before and after it agree")
    functions = functions_of(twice.first.kind)
    calls = [call_to_leave_out(report.program, each.source, functions) for each in (twice.first, *twice.again)]
    edits = [without_call(report.program, call) for call in calls]
    return (Fix("remove both", together(*edits) if all(edits) else ()),)


def _found(report: Report, group: list[Exchanges]) -> Finding:
    first = group[0].first
    compiled = dict.fromkeys(each for twice in group for each in (twice.first, *twice.again))
    causes = () if group[0].is_written else causes_of(report.program, first)
    moved = next((cause.moved.value for cause in causes if cause.moved is not None), first.result_types[0])
    axes = tuple(dict.fromkeys(axis for each in compiled for axis in each.axes or ()))
    over = ", ".join(dict.fromkeys(axis.name for axis in axes))
    nearest = max(compiled, key=lambda each: len(each.source.stack))  # the partitioner's may have the caller's line
    verb = "permuted" if {each.kind for each in compiled} == {"collective-permute"} else "exchanged"
    return finding(
        RULE,
        place_in_hlo(nearest),
        f"{moved} is {verb} over {over} and back, elementwise operations in between",
        confidence="likely",
        axes=axes,
        subject=str(moved),
        related=[place_in_hlo(each) for each in compiled if each is not nearest],
        evidence=[compiled_to(each) for each in compiled],
        fixes=_fixes(report, group[0]),
        saves=at_most(*compiled),
    )


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
    if stage is None or flow is None or not any(each.kind in EXCHANGES for each in in_hlo(report)):
        return
    found: dict[int, tuple[Instruction, Collective]] = {}
    for each in collectives_in_context(stage, context_of(report.program)):
        instruction = flow.module.instruction(each.computation, each.name) if each.kind in EXCHANGES else None
        if instruction is not None:
            found[instruction.start] = instruction, each
    after = {start: _next(flow, exchange, found) for start, (_, exchange) in found.items()}
    for start, (instruction, exchange) in found.items():
        behind = after[start] if exchange.origin in WRITTEN else _behind(after, start)
        back = [found[each] for each in behind if _is_taken_back(exchange, found[each][1])]
        first = next(iter(compiled_collectives(report, [instruction])), None) if back else None
        again = tuple(c for c in compiled_collectives(report, [each for each, _ in back]) if c is not first)
        if first is not None and again:
            yield Exchanges(first, again)


def _next(flow: HloFlow, exchange: Collective, found: Mapping[int, object]) -> tuple[int, ...]:
    """The exchanges that are all that becomes of one's result, element by element; none where that is not so."""
    reach = forward(flow, (value for value, _ in results_of(flow.module, exchange)), ELEMENTWISE | Does.RESHAPE)
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


RULE = Rule(
    id="SS14",
    slug="ping-pong-reshard",
    severity="warning",
    finds="A value that is resharded to another dimension and back, with only elementwise operations in between.",
    why="Two all-to-alls, or permutations where axes trade places, each of which moves nearly all of"
    " the value. XLA does not cancel them.",
    proof="In the partitioner's output, an all-to-all over the same devices, or the inverse of a permutation, is all"
    " that becomes of an exchanged value, through elementwise operations and reshapes; the compiled program has both."
    " Whether both can be left out, the trial decides.",
    faulty="""y = lax.with_sharding_constraint(2 * x, P(None, "x"))  # x is P("x", None)
return lax.with_sharding_constraint(jnp.sin(y), P("x", None))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x", None))',
    check=check,
    tries="the program without the constraint in between, or without both exchanges",
)
