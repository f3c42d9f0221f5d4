"""Causes of a collective that the partitioner inserted.

It belongs to an operation of the propagated program, which is found by the operation's number, by its name and line, or
among those that use what is moved. `collective_context.py` says what it does for that operation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from ..catalog.spellings import PRIMITIVES
from ..correspondence.evidence import Evidence
from ..correspondence.numbers import tag_of_location, tags_in
from ..correspondence.rows import rows_by_tag, rows_of
from ..dataflow.meaning import SAME, does
from ..dataflow.mlir import Dataflow, Node
from ..ir.def_use import forward
from ..ir.derived import derived
from ..ir.name_scopes import last_components, merged_parts
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import (
    WRITTEN,
    BoundaryOrigin,
    Collective,
    CollectiveCause,
    Confidence,
    MovedDimension,
    NodeAxis,
    SourcePosition,
)
from .collective_context import CollectiveContext
from .executed import around, outputs_of, taken_by
from .explained import wording_of
from .gradients import BACKWARD
from .sharded_dimensions import local_size, placed_at
from .table import propagated
from .why import overlap

MAX_STEPS = 3
"""Operations in a row that are followed through those."""

MAX_OPERATIONS = 16
"""Operations of one collective, merged from several, that are looked at."""


def is_inserted(collective: Collective) -> bool:
    """True if the partitioner inserted it, or some part that was merged with the user's."""
    parts = merged_parts(collective.op_name or "")
    return collective.origin not in WRITTEN or (
        len(parts) > 1 and any(last_components(part)[0] not in PRIMITIVES for part in parts)
    )


@derived
def causes_of(program: Program, collective: Collective) -> tuple[CollectiveCause, ...]:
    """Return the cause of an HLO collective for each of the operations that it was merged from.

    Empty for one that the user wrote, where propagation was not recorded, and where no operation of the compiled
    program that uses the collective's result, or makes its operand, is the one that was found.
    """
    stage, flow = propagated(program)
    text = program.stage(collective.stage)
    if stage is None or flow is None or text is None or text.dialect != "hlo" or not is_inserted(collective):
        return ()
    match = rows_of(stage, flow, tags_in(text, collective.span), collective.op_name, collective.source.frame)
    # Where several were merged, each by its number, the collective has all of them; of those of a name the first.
    is_merged = match.evidence is Evidence.NUMBER
    confidence = "exact" if is_merged else match.confidence
    rows = [row for row in (match.found if is_merged else match.found[:1]) if not _returns(flow, row)]
    found = []
    for row in rows[:MAX_OPERATIONS]:
        cause = CollectiveContext(program, flow, row, collective, confidence).cause()
        if _moves_the_result(flow, row, collective, cause):
            cause = _at_a_user(program, stage, flow, flow.results(row), collective, confidence) or cause
        if cause.effect == "own":
            elsewhere = _at_others_of_it(program, stage, flow, row, collective, confidence)
            elsewhere = elsewhere or _at_a_user(program, stage, flow, flow.results(row), collective, confidence)
            elsewhere = elsewhere or _at_an_output(flow, text, collective)
            elsewhere = elsewhere or (
                _at_a_source(program, flow, row, collective, confidence) if cause.moved is None else None
            )
            cause = elsewhere or cause
        # With explicit axes an operation after it asks; and what nothing sharded goes into is no cause.
        if cause.effect != "own" or (cause.moved is not None and collective.origin != "explicit"):
            found.append(cause)
    if not found:
        arguments = [
            Node("argument", -1, index)
            for index in range(len(flow.function.arguments))
            if wording_of(flow).places.argument(index) == collective.op_name
        ]
        cause_there = _at_a_user(program, stage, flow, arguments, collective, "name")
        cause_there = cause_there or _at_an_output(flow, text, collective)
        found += [] if cause_there is None else [cause_there]
    return tuple(cause for cause in found if _is_borne_out(stage, flow, cause, around(text, collective)))


def _moves_the_result(flow: Dataflow, row: int, collective: Collective, cause: CollectiveCause) -> bool:
    """Return whether a gather is of an operation's result, by its size, and not of what a cause says is moved."""
    sizes = {each.elements for each in collective.operand_types}
    is_of_result = any(local_size(flow, node) in sizes for node in flow.results(row))
    return collective.kind == "all-gather" and is_of_result and cause.elements not in sizes


def _is_borne_out(stage: ParsedStage, flow: Dataflow, cause: CollectiveCause, met: Collection[int]) -> bool:
    """Return whether an operation is among those that the collective has to do with in the compiled program.

    True too where that is not known: operations have no numbers. Outputs are found along that way.
    """
    numbers = set[int]() if cause.row is None else _numbers_beside(flow, stage, cause.row)
    return not numbers or not met or not numbers.isdisjoint(met)


def _numbers_beside(flow: Dataflow, stage: ParsedStage, row: int) -> set[int]:
    """The numbers of an operation; of one that only hands a value on, and is left out, those before and after it.

    None of a shard_map, of which the compiled program has the operations inside.
    """
    found = set() if flow.rows[row].name.endswith("manual_computation") else _numbers(flow, stage, row)
    if _passes(flow, row):
        rows = [node.row for node in flow.operands(row) if node is not None and node.kind == "result"]
        for step in forward(flow, flow.results(row), MAX_STEPS, lambda each: _passes(flow, each)):
            rows += chain.from_iterable(step.values())
        found |= _tags(flow, stage, rows)
    return found


def _at_an_output(flow: Dataflow, text: ParsedStage, collective: Collective) -> CollectiveCause | None:
    """The cause at an output whose requested sharding is not that of the value which becomes it."""
    returned, wording, axes = flow.returned, wording_of(flow), collective.axes or ()
    is_outermost = text.hlo is not None and text.hlo.entry is not None and collective.computation == text.hlo.entry.name
    for number in outputs_of(text, collective) if is_outermost else ():
        node = returned[number] if number < len(returned) else None
        before, after = (None if each is None else placed_at(flow, each) for each in (node, Node("output", -1, number)))
        if node is None or before is None or after is None or len(before.dims) != len(after.dims):
            continue
        for dim, (own, other) in enumerate(zip(before.dims, after.dims, strict=True)):
            moved = [axis for axis in own.axes if any(overlap(axis, each) for each in axes)]
            if moved and own.axes != other.axes:
                place = wording.places.operation(node.row)[1] if node.kind == "result" else SourcePosition()
                return CollectiveCause(
                    effect="reshard",
                    operation=BoundaryOrigin("output", wording.places.output(number)),
                    rule=None,
                    place=place,
                    moved=MovedDimension(True, wording.name(node), dim),
                    before=before,
                    after=after,
                    origins=tuple(NodeAxis(node, axis) for axis in moved),
                    against=(),
                    needed=False,
                    confidence="exact",
                )
    return None


def _at_others_of_it(
    program: Program, stage: ParsedStage, flow: Dataflow, row: int, collective: Collective, confidence: Confidence
) -> CollectiveCause | None:
    """The cause at another of the operations that one of JAX's became, as a tile does a broadcast and reshapes."""
    tag = tag_of_location(stage, flow.rows[row].location)
    for other in () if tag is None else rows_by_tag(flow, stage).get(tag, ())[1:MAX_OPERATIONS]:
        cause = CollectiveContext(program, flow, other, collective, confidence).cause()
        if cause.effect != "own":
            return cause
    return None


def _at_a_user(
    program: Program,
    stage: ParsedStage,
    flow: Dataflow,
    moved: Sequence[Node],
    collective: Collective,
    confidence: Confidence,
) -> CollectiveCause | None:
    """The cause at an operation that uses what is moved: newer versions of XLA name a collective after its operand.

    Of several, the one that takes the collective's result, or else the one on its line, and in its pass; rather one for
    which this very value is moved.
    """
    frame, text = collective.source.frame, program.stage(collective.stage)
    taken = frozenset[int]() if text is None else taken_by(text, collective)
    found: list[tuple[tuple[bool, bool, bool, bool], CollectiveCause]] = []
    for users in forward(flow, moved, MAX_STEPS, lambda row: _passes(flow, row)):
        met = [(node, row) for node, rows in users.items() for row in rows if not _returns(flow, row)]
        for node, row in met[:MAX_OPERATIONS]:
            context = CollectiveContext(program, flow, row, collective, confidence)
            cause = context.cause()
            is_taken = not taken.isdisjoint(_numbers(flow, stage, row))
            if (cause.effect != "own" or is_taken) and context.is_about(node):
                same_line = frame is not None and cause.place.frame == frame
                is_backward = BACKWARD in context.name
                is_moved = cause.moved is not None and cause.moved.value == wording_of(flow).name(node)
                away = is_backward != (collective.direction == "backward")
                found.append(((not is_taken, not is_moved, not same_line, away), cause))
        if found:
            break
    return min(found, key=lambda item: item[0], default=(None, None))[1]


def _numbers(flow: Dataflow, stage: ParsedStage, row: int) -> set[int]:
    """The numbers of an operation, and of what hands on its only result: the compiler may join it with that."""
    users = [user for node in flow.results(row) for user in flow.users(node)]
    return _tags(flow, stage, (row, *(user for user in users if len(users) == 1 and _passes(flow, user))))


def _tags(flow: Dataflow, stage: ParsedStage, rows: Iterable[int]) -> set[int]:
    return {tag for each in rows if (tag := tag_of_location(stage, flow.rows[each].location)) is not None}


def _returns(flow: Dataflow, row: int) -> bool:
    return flow.rows[row].name.rpartition(".")[2] == "return"


def _passes(flow: Dataflow, row: int) -> bool:
    return does(flow.rows[row].name) in SAME


def _at_a_source(
    program: Program, flow: Dataflow, row: int, collective: Collective, confidence: Confidence
) -> CollectiveCause | None:
    """The cause at what the only operand comes from: compilers move a change of shape behind what does not need it."""
    for _ in range(MAX_STEPS):
        (node, *others) = flow.operands(row) or (None,)
        if node is None or others or node.kind != "result":
            return None
        row = node.row
        cause = CollectiveContext(program, flow, row, collective, confidence).cause()
        if cause.effect != "own":
            return cause
        if cause.moved is not None:
            return None
    return None
