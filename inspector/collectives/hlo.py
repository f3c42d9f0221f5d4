"""The collectives of an HLO module, each counted once.

XLA writes one collective in several ways: as one instruction; as a `-start` and a `-done`; in a computation of its own
that an asynchronous call wraps; cloned into every fusion that it overlaps with (TPU's `async-collective-start`, the
clones share channel and chain); a reduce-scatter as a fusion around an all-reduce (TPU's `all-reduce-scatter`); and
what goes between slices as a send and a recv (`dcn_transfers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...parsers.hlo import ArrayShape, HloModule, HloType, Instruction, TupleShape
from ...parsers.hlo.fields import number
from ...parsers.hlo.types import leaves
from ...parsers.record import Record
from ...parsers.source import Frame
from ..catalog.spellings import DONES, FUSED, HLO_OPCODES, KIND_OF, REDUCTIONS, STARTS
from ..execution_counts.hlo_executions import HloExecutions
from ..ir.types import array_type, size
from ..report import Collective, CollectivePart, Kind, Origin, SourcePosition
from .context import AnalysisContext
from .dcn_transfers import RENDEZVOUS, Transfer, is_host_transfer, slices_of, transfer_of
from .origin import direction_of, origin_of, written_by
from .participants import GroupsOfModule, Participants, participants_of
from .users import UserPositions, is_joined, parts_of, users_with_positions

OPENINGS = HLO_OPCODES | STARTS


class ParsedCollective(Record, frozen=True):
    """A collective instruction with what decides how it counts: who calls its computation, and its other half.

    Of a transfer between slices, which begins with a send, the other half is the recv. What is joined has the name and
    the line of one of its parts, which are not its own.
    """

    kind: Kind
    instruction: Instruction
    done: Instruction | None = None
    wrapper: Instruction | None = None
    transfer: Transfer | None = None
    is_joined: bool = False

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the line that it comes from."""
        return () if self.is_joined else self.place.frames

    @property
    def op_name(self) -> str | None:
        """The name of the operation that it comes from."""
        return None if self.is_joined else self.place.op_name or self.instruction.op_name

    @property
    def fused_kind(self) -> Kind | None:
        """The kind that the fusion around it makes of it, such as a reduce-scatter of an all-reduce."""
        if self.wrapper is None or self.wrapper.attributes.get("kind") != "kCustom":
            return None
        computation = self.instruction.computation.name
        found = (kind for (opcode, name), kind in FUSED.items() if opcode == self.kind and computation.startswith(name))
        return next(found, None)

    @property
    def place(self) -> Instruction:
        """The instruction that stands for it: itself, or the fusion that makes another kind of it."""
        return self.wrapper if self.wrapper is not None and self.fused_kind is not None else self.instruction

    @property
    def counted_as(self) -> Kind:
        """The kind that it is in effect."""
        return self.fused_kind or self.kind

    @property
    def is_async(self) -> bool:
        """True if it is split into a start and a done, by itself or by its wrapper."""
        if self.transfer is not None:
            return True
        wrapper = self.wrapper.name if self.wrapper is not None and self.wrapper.opcode == "fusion" else ""
        started = self.wrapper is not None and self.wrapper.opcode.endswith("-start")
        return self.instruction.opcode in STARTS or started or wrapper.startswith("async-collective")


def hlo_collectives(stage: str, module: HloModule, context: AnalysisContext) -> tuple[Collective, ...]:
    """Every collective of a module, in text order."""
    executions = HloExecutions(module)
    found = tuple(_without_clones(_found(module)))
    nameless = [each.instruction for each in found if not each.frames]
    users = users_with_positions(module, nameless, differentiated=context.differentiated)
    parts = parts_of(module, nameless)
    slices = slices_of(module, context.devices)
    written = GroupsOfModule(len(slices[0]) if slices else context.partitions)
    return tuple(
        _collective(
            stage,
            each,
            participants_of(each.instruction, each.transfer, slices, written, context),
            context,
            executions,
            users,
            parts.get(each.instruction, ()),
        )
        for each in found
    )


def _found(module: HloModule) -> Iterator[ParsedCollective]:
    dones = {
        (done.computation.name, done.operands[0]): done for done in module.with_opcode(DONES) if done.operands
    }  # fmt: skip
    openings = tuple(module.with_opcode(OPENINGS))
    received = (
        {(r.computation.name, r.frontend_attributes.get(RENDEZVOUS)): r for r in module.with_opcode({"recv"})}
        if any(instruction.opcode == "send" for instruction in openings)
        else {}
    )
    for instruction in openings:
        if instruction.opcode == "send" and is_host_transfer(instruction):
            continue
        computation = instruction.computation
        transfer = transfer_of(instruction.frontend_attributes) if instruction.opcode == "send" else None
        if transfer is not None:
            recv = received.get((computation.name, instruction.frontend_attributes.get(RENDEZVOUS)))
            yield ParsedCollective(transfer.kind, instruction, recv, transfer=transfer)
            continue
        callers = () if computation.is_entry else module.graph.callers(computation.name)
        wrappers = [caller for _, caller in callers if caller.opcode == "fusion" or caller.opcode.endswith("-start")]
        yield ParsedCollective(
            OPENINGS[instruction.opcode],
            instruction,
            dones.get((computation.name, instruction.name)),
            wrappers[0] if wrappers else None,
            is_joined=is_joined(module, instruction),
        )


def _without_clones(found: Iterator[ParsedCollective]) -> Iterator[ParsedCollective]:
    """The first of the clones that overlap one collective with several fusions."""
    seen: set[tuple[Kind, str, str]] = set()
    for each in found:
        chain = each.instruction.frontend_attributes.get("chain_id")
        channel = each.instruction.attributes.get("channel_id")
        if chain is not None and channel is not None:
            clone = (each.kind, channel, chain)
            if clone in seen:
                continue
            seen.add(clone)
        yield each


def _collective(
    stage: str,
    found: ParsedCollective,
    participants: Participants,
    context: AnalysisContext,
    executions: HloExecutions,
    users: Mapping[Instruction, UserPositions],
    parts: tuple[CollectivePart, ...],
) -> Collective:
    instruction, place, kind, transfer = found.instruction, found.place, found.counted_as, found.transfer
    results = _results(found)
    if transfer is not None:
        operands = tuple(leaves(instruction.type))[:1]
    elif place is instruction:
        operands = _operands(kind, instruction, results, participants.group_size)
    else:
        operands = tuple(leaves(instruction.type))
    bytes_in, bytes_out = size(operands), size(results)
    op_name = found.op_name
    # Transfers have channels of their own.
    channel = instruction.attributes.get("channel_id") if transfer is None else None
    marks = {**instruction.frontend_attributes, **place.frontend_attributes}
    runs = executions.of(place.computation.name)
    called = op_name or (transfer.primitive if transfer is not None else None)
    origin = _origin(parts, context) if parts else origin_of(called, channel, marks, context.partitioning, place.name)
    # What a user wrote comes from where it was written, not from where its result is used.
    around = UserPositions() if origin == "user" else users.get(instruction, UserPositions())
    names = _names(parts) or (op_name,)
    directions = {direction_of(name, differentiated=context.differentiated) for name in names}
    direction = directions.pop() if len(directions) == 1 else "unknown"
    placed = [part.source for part in parts if part.source.stack]
    source = SourcePosition(placed[0].stack, "name") if placed else around.source
    direction = around.direction if direction == "unknown" else direction
    return Collective(
        stage=stage,
        kind=kind,
        name=place.name,
        computation=place.computation.name,
        span=place.span,
        axes=participants.axes(context.meshes),
        groups=participants.groups,
        pairs=participants.pairs,
        operand_types=tuple(map(array_type, operands)),
        result_types=tuple(map(array_type, results)),
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        wire_bytes=KIND_OF[kind].wire_bytes(participants.group_size, bytes_in, bytes_out),
        executions=runs.count,
        most_executions=runs.most,
        is_async=found.is_async,
        origin=written_by(origin, direction),
        direction=direction,
        source=SourcePosition(found.frames, "exact") if found.frames else source,
        reduction=_reduction(instruction, executions.module) if transfer is None else transfer.reduction,
        channel_id=number(channel),
        fused_form=instruction.computation.name.rstrip(".0123456789") if place is not instruction else None,
        op_name=op_name,
        loops=runs.loops,
        parts=parts,
    )


def _names(parts: tuple[CollectivePart, ...]) -> tuple[str | None, ...]:
    return tuple(part.op_name for part in parts if part.op_name is not None)


def _origin(parts: tuple[CollectivePart, ...], context: AnalysisContext) -> Origin:
    origins = {origin_of(name, None, {}, context.partitioning) for name in _names(parts)}
    return origins.pop() if len(origins) == 1 else "unknown"


def _results(found: ParsedCollective) -> tuple[HloType, ...]:
    outer = found.place
    if found.transfer is not None:
        return tuple(leaves((found.done or outer).type))[:1]
    if found.done is not None:
        return tuple(leaves(found.done.type))
    # Without its done: a start gives its operands, then its results, then what the backend keeps for itself; only that
    # of an all-reduce gives the results alone, since these are of the operands' types.
    gives_both = outer.opcode in STARTS and STARTS[outer.opcode] != "all-reduce"
    if gives_both and isinstance(outer.type, TupleShape) and len(outer.type.elements) > 1:
        return tuple(leaves(outer.type.elements[1]))
    return tuple(leaves(outer.type))


def _operands(
    kind: Kind, instruction: Instruction, results: tuple[HloType, ...], size: int | None
) -> tuple[HloType, ...]:
    """The types of what goes in.

    They follow from the results (XLA, xla/service/shape_inference.cc), so the operands, which may be anywhere in a
    large computation, need not be looked up; save where a collective has operands of other kinds too.
    """
    sides = KIND_OF[kind].sides
    if sides == "equal":
        return results
    if sides == "apart" or size is None:
        names = instruction.operands[:1] if sides == "apart" else instruction.operands
        return tuple(found.type for name in names if (found := instruction.computation.instruction(name)) is not None)
    dimension = number(instruction.attributes.get("dimensions", "").strip("{} "))
    if dimension is None:
        return results
    return tuple(_resized(result, dimension, size, grows=sides == "scattered") for result in results)


def _resized(type: HloType, dimension: int, size: int, *, grows: bool) -> HloType:
    if not isinstance(type, ArrayShape) or not 0 <= dimension < len(type.dims) or size == 0:
        return type
    dims = list(type.dims)
    dims[dimension] = dims[dimension] * size if grows else dims[dimension] // size
    return replace(type, dims=tuple(dims))


def _reduction(instruction: Instruction, module: HloModule) -> str | None:
    """Return the computation of a reducing collective: `sum`, `max`, …; None for other collectives and computations."""
    names = instruction.callees.get("to_apply", ())
    computation = module.computation(names[0]) if len(names) == 1 else None
    root = computation.root if computation is not None else None
    return None if root is None else REDUCTIONS.get(root.opcode)
