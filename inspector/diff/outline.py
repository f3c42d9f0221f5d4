"""The substance of a lowering, without what differs between two texts of it: no names, numbers or positions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import zip_longest

from ..capture.model import STAGES, CaptureError, devices_text
from ..collectives.stage import collectives_of
from ..ir.name_scopes import last_components
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import Collective, Report, ShardedValue
from ..report.changes import (
    BoundarySharding,
    CollectiveSignature,
    Fingerprint,
    Operand,
    Place,
    Transfer,
)
from ..report.spelled import argument_of, types_text
from ..report.stage_summary import summarize
from .keys import Lines, finding_keys, intermediate_shardings

COMPARABLE = tuple(name for name, kind in reversed(STAGES.items()) if kind.dialect != "jaxpr")
"""The stages that can be compared, that which is nearest to what runs first."""

_INDEX = re.compile(r"\[\d+\]")


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
    return BoundarySharding(value.role, value.name, str(value.type), spec=value.spec)


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
