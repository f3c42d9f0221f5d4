"""The substance of a lowering, without what differs between two texts of it: no names, numbers or positions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import msgspec

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Span
from ..capture.model import STAGES, CaptureError, Execution, devices_text
from ..collectives.origin import last_components
from ..collectives.spelled import argument_of, types_text
from ..collectives.stage import collectives_of
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..pipeline import summarize
from ..report import Collective, Kind, Origin, Pass, Report, ShardedValue
from ..units import known_product, known_sum
from .keys import FindingKey, IntermediateSharding, Line, Lines, finding_keys, intermediate_shardings

COMPARABLE = tuple(name for name, kind in reversed(STAGES.items()) if kind.dialect != "jaxpr")
"""The stages that can be compared, that which is nearest to what runs first."""

_INDEX = re.compile(r"\[\d+\]")


class CollectiveSignature(Record, frozen=True):
    """The communication of a collective: two of equal signature are the same communication, wherever they are.

    Bytes are per device and execution. `dtypes` are those that travel, sorted; shapes are left out, since compilers
    reshape freely. `partners` stands for the pairs of a permute, or for groups that no axes form. `fused_form` says as
    what it is written, where that is something else.
    """

    kind: Kind
    reduction: str | None
    axes: tuple[AxisRef, ...] | None
    dtypes: tuple[str, ...]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    is_async: bool
    partners: str = ""
    fused_form: str | None = None

    @property
    def total_wire(self) -> int | None:
        """Bytes that a device sends in one run of the program."""
        return known_product(self.wire_bytes, self.executions)


class Place(Record, frozen=True):
    """The source of a collective: for each frame, innermost first, the function and the text of its line.

    Where the compiler recorded no line, the only entry is the name that it gives, an argument's or a path of
    operations. `operation` is JAX's, in its spelling.
    """

    frames: tuple[Line, ...]
    operation: str
    direction: Pass


class Operand(Record, frozen=True, order=True):
    """One of the arrays that a collective carries: its dtype, and its elements on each device before and after."""

    dtype: str
    elements_in: int
    elements_out: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """One collective, or several that differ in nothing that counts. What is not compared is of the first of them.

    `operands` are in the order of the text; empty where not all of them are known.
    """

    work: CollectiveSignature
    place: Place
    origin: Origin = field(compare=False)
    types: str = field(compare=False)
    where: str = field(compare=False)
    name: str = field(compare=False, default="")
    in_loop: bool = field(compare=False, default=False)
    span: Span | None = field(compare=False, default=None)
    operands: tuple[Operand, ...] = field(compare=False, default=())


Counted = tuple[tuple[Transfer, int], ...]
"""Collectives, each with how often it is there."""


class BoundarySharding(Record, frozen=True):
    """The sharding of an argument or an output; `spec` is None if unknown."""

    role: str
    name: str
    type: str
    spec: str | None


class Fingerprint(Record, frozen=True):
    """One side of a comparison, at one stage.

    `transfers` are in the order of the text, each with how often it is there; `insides` are the values inside that are
    sharded. `opcodes` counts the operations of the stage, `sizes` are bytes of memory per device, `costs` what the
    model says, by name. `text` is the stage itself, None of what is kept without it; so is `execution`, the result of
    a run.
    """

    title: str
    stage: str
    transfers: Counted
    borders: tuple[BoundarySharding, ...]
    insides: tuple[tuple[IntermediateSharding, int], ...] = ()
    findings: tuple[tuple[FindingKey, int], ...] = ()
    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    costs: dict[str, float] = msgspec.field(default_factory=dict)
    opcodes: dict[str, int] = msgspec.field(default_factory=dict)
    text: ParsedStage | None = None
    execution: Execution | None = None

    @property
    def count(self) -> int:
        """Number of collectives."""
        return sum(count for _, count in self.transfers)

    @property
    def total_wire(self) -> int | None:
        """Bytes that a device sends in one run of the program; None where one collective's are not known."""
        return total_wire(self.transfers)


def total_wire(transfers: Counted) -> int | None:
    """Bytes that a device sends for all of them in one run of the program; None where one's are not known."""
    return known_sum(known_product(one.work.total_wire, count) for one, count in transfers)


def common_stages(before: Program, after: Program) -> tuple[ParsedStage, ParsedStage]:
    """The stage to compare: the last that both have, else the last ones of each that are in one language.

    Raises:
        CaptureError: no text of one is in a language of the other's.
    """
    ones, others = ([stage for name in COMPARABLE if (stage := side.stage(name))] for side in (before, after))
    pairs = [(one, other) for one in ones for other in others if one.dialect == other.dialect]
    same = [pair for pair in pairs if pair[0].name == pair[1].name]
    if not pairs:
        held = " and ".join(", ".join(sorted(s.name for s in side)) or "no text" for side in (ones, others))
        raise CaptureError(f"these cannot be compared: they have {held}; give the same stage of both")
    return (same or pairs)[0]


def outline(report: Report, stage: ParsedStage) -> Fingerprint:
    """The outline of one side at one of its stages."""
    lines = Lines(report.program)
    counted: dict[Transfer, int] = {}
    for collective in collectives_of(report.program, stage):
        transfer = _transfer(collective, report, lines)
        counted[transfer] = counted.get(transfer, 0) + 1
    return Fingerprint(
        title=_title(report, stage),
        stage=stage.name,
        transfers=tuple(counted.items()),
        borders=tuple(_border(value) for value in report.shardings if value.role in ("argument", "output")),
        insides=intermediate_shardings(report, lines),
        findings=finding_keys(report, lines),
        sizes=_sizes(report),
        costs=_costs(report),
        opcodes=dict(summarize(stage).opcodes),
        text=stage,
        execution=report.capture.execution,
    )


def _transfer(collective: Collective, report: Report, lines: Lines) -> Transfer:
    work = CollectiveSignature(
        kind=collective.kind,
        reduction=collective.reduction,
        axes=collective.axes,
        dtypes=tuple(sorted({type.dtype for type in collective.operand_types})),
        bytes_in=collective.bytes_in,
        bytes_out=collective.bytes_out,
        wire_bytes=collective.wire_bytes,
        executions=collective.executions,
        is_async=collective.is_async,
        partners=_partners(collective),
        fused_form=(collective.fused_form or "").partition(".")[0] or None,
    )
    called = _INDEX.sub("[*]", argument_of(collective) or collective.op_name or "")
    place = Place(
        frames=lines.of(collective.source.stack) or ((called, ""),),
        operation=", ".join(sorted(set(last_components(collective.op_name or "")))),
        direction=collective.direction,
    )
    where = collective.source.function_text(report.script) or called
    in_loop = bool(collective.loops) or collective.executions not in (None, 0, 1)
    return Transfer(
        work,
        place,
        collective.origin,
        types_text(collective),
        where,
        collective.name,
        in_loop,
        collective.span,
        _operands(collective),
    )


def _operands(collective: Collective) -> tuple[Operand, ...]:
    """One for each operand, with the result that it becomes; none where these are not as many, or of unknown size."""
    found = []
    for operand, result in zip_longest(collective.operand_types, collective.result_types):
        if operand is None or result is None or operand.elements is None or result.elements is None:
            return ()
        found.append(Operand(operand.dtype, operand.elements, result.elements))
    return tuple(found)


def _partners(collective: Collective) -> str:
    """A short name for who talks to whom, where the axes do not say it."""
    if not collective.pairs and collective.axes is not None:
        return ""
    members: Sequence[object] = sorted(collective.pairs) or [list(group) for group in collective.groups]
    return hashlib.sha256(repr(members).encode()).hexdigest()[:12] if members else ""


def _border(value: ShardedValue) -> BoundarySharding:
    return BoundarySharding(value.role, value.name, str(value.type), value.spec)


def _sizes(report: Report) -> dict[str, int]:
    memory, peak = report.capture.memory, report.peak
    sizes = {} if peak is None else {"peak": peak.bytes}
    if memory is not None:
        parts = {"arguments": memory.arguments, "outputs": memory.outputs, "temporaries": memory.temporaries}
        sizes |= {name: size for name, size in (*parts.items(), ("aliased", memory.aliased)) if size is not None}
    return sizes


def _costs(report: Report) -> dict[str, float]:
    cost = report.cost
    if cost is None:
        return {}
    times = {"estimated": cost.total, "compute": cost.compute, "memory": cost.memory}
    return {**times, "communication": cost.communication, "waiting": cost.waiting}


def _title(report: Report, stage: ParsedStage) -> str:
    """`step, cpu × 8, jax 0.12.0`; the text's name, where nothing else is known."""
    subject = report.capture.subject
    if subject is None:
        return stage.source.name
    # A target that is not there says itself how many devices it has.
    is_told = ":" in subject.target and len(subject.device_assignment) in (0, subject.device_count)
    devices = subject.target if is_told else devices_text(subject)
    parts = [subject.function, devices]
    return ", ".join([*parts, *([f"jax {subject.jax}"] if subject.jax else [])])
