"""Live values on a device at peak memory, the lines that made them, and whether they fit on the target.

XLA writes it beside the optimized program, one value a line: `    copy-start{0}: 8388608 bytes (cumulative: …)`
(xla/service/buffer_assignment.cc). The numbers are of the schedule, before values share buffers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise

from ...parsers.hlo import HloModule, HloType, Instruction, TupleShape
from ...parsers.hlo.fields import number
from ..capture.model import Memory
from ..collectives.context import context_of
from ..collectives.origin import direction_of
from ..ir.derived import derived
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from ..report import LiveValue, Pass, PeakMemory, SourcePosition
from ..units import known_sum
from .host_transfers import VMEM, host_transfers, is_on_host, memory_space
from .places import machine_of

MAX_VALUES = 1000
"""Values that are kept, the largest first."""

_SCHEDULED = re.compile(rb"^ +\d{1,9}:(\S+)$", re.MULTILINE)
_VALUE = re.compile(rb"^\s+(?P<name>[^\s{]+)\{(?P<index>[\d,\s]*)\}:\s(?P<size>\d{1,18}) bytes", re.MULTILINE)


def peak_memory(program: Program) -> PeakMemory | None:
    """Return the compiler's account of memory; None where it gives no figures.

    The capacity is that of the device on a target that there are figures for.
    """
    parts, stage = program.capture.memory or Memory(), program.stage("hlo")
    known = known_sum((parts.arguments, parts.outputs, parts.temporaries))
    taken = None if known is None else known + (parts.code or 0) - (parts.aliased or 0)
    size = taken or parts.peak
    if not size:
        alive = alive_at_peak(program)
        if not alive:
            return None
        size = sum(value.bytes for value in alive if not value.elsewhere)
    machine = machine_of(program)
    capacity = None if machine is None else int(machine.chip.figure("hbm_bytes") * machine.share)
    return PeakMemory(
        bytes=size,
        capacity=capacity,
        peak=parts.peak if _is_plausible(program, parts, taken) else None,
        host=parts.host,
        transfers=() if stage is None else host_transfers(stage),
    )


def alive_at_peak(program: Program) -> tuple[LiveValue, ...]:
    """Return the values that are alive when the program takes most memory, the largest ones, these first.

    They are those of the schedule, before values share buffers.
    """
    stage, peak = program.stage("hlo"), program.capture.peak
    if peak is None:
        return ()
    if stage is None:
        return _made_by(peak.data, None)
    return _alive(stage, peak.data, is_tpu(program), context_of(program).differentiated)


def _is_plausible(program: Program, parts: Memory, taken: int | None) -> bool:
    """Return whether the compiler's peak agrees with its other figures.

    That for CPUs leaves temporaries out, that for TPUs counts the host's memory.
    """
    subject = program.capture.subject
    if parts.peak is None or taken is None or (subject is not None and subject.platform == "cpu"):
        return False
    least = max(0, (parts.arguments or 0) - (parts.aliased or 0)) + (parts.temporaries or 0)
    return least <= parts.peak <= taken


def is_tpu(program: Program) -> bool:
    """Return whether it is compiled for TPUs."""
    subject = program.capture.subject
    return subject is not None and subject.platform == "tpu"


@derived
def _alive(stage: ParsedStage, listed: bytes, on_tpu: bool, differentiated: bool) -> tuple[LiveValue, ...]:
    return _made_by(listed, stage.hlo if listed else None, on_tpu=on_tpu, differentiated=differentiated)


def _made_by(
    listed: bytes, module: HloModule | None, *, on_tpu: bool = False, differentiated: bool = False
) -> tuple[LiveValue, ...]:
    known = {} if module is None else scheduled_instructions(module, listed)
    sized = [(int(match["size"]), match) for match in _VALUE.finditer(listed)]
    # A name may be that of a thousand operands.
    direction = cache(partial(direction_of, differentiated=differentiated))
    found = []
    for size, match in sorted(sized, key=lambda each: -each[0])[:MAX_VALUES]:
        name = match["name"].decode("utf-8", "replace")
        if size:
            made_by = known.get(name) or (None if module is None else _renamed(name, module))
            found.append(_value(name, match["index"].decode(), size, made_by, direction, on_tpu=on_tpu))
    return tuple(found)


def instructions_by_name(module: HloModule) -> dict[str, Instruction]:
    """The instructions by name; of several of one name that of the entry computation."""
    found: dict[str, Instruction] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            if computation.is_entry or instruction.name not in found:
                found[instruction.name] = instruction
    return found


def scheduled_names(live_ranges: bytes) -> list[str]:
    """The instructions of XLA's schedule, in order."""
    return [match[1].decode("utf-8", "replace") for match in _SCHEDULED.finditer(live_ranges)]


def scheduled_instructions(module: HloModule, live_ranges: bytes) -> dict[str, Instruction]:
    """The instructions by the names that XLA's schedule has.

    In front of an asynchronous `dynamic-slice-start` it has the `dynamic-slice.7` that this begins, whose name is not
    in the text: the value is what `dynamic-slice-done` gives.
    """
    found = instructions_by_name(module)
    for name, following in pairwise(scheduled_names(live_ranges)):
        opcode, start = name.partition(".")[0], found.get(following)
        if name not in found and start is not None and start.opcode == f"{opcode}-start":
            ends = {end.operands[0]: end for end in module.with_opcode({f"{opcode}-done"}) if end.operands}
            found[name] = ends.get(following, start)
    return found


def _renamed(name: str, module: HloModule) -> Instruction | None:
    """The instruction that was scheduled under a name; XLA renames some of them for GPUs afterwards."""
    offset = module.source.data.find(f'scheduling_name="{name}"'.encode())
    return None if offset < 0 else module.instruction_at(offset)


def part_of(made_by: Instruction, index: str) -> HloType:
    """The type of the part of a result that has this index, `0` or `1, 0`; of all of it where there is none."""
    part = made_by.type
    for place in filter(None, index.split(",")):
        element = number(place.strip())
        if element is None or not isinstance(part, TupleShape) or element >= len(part.elements):
            return made_by.type
        part = part.elements[element]
    return part


def _value(
    name: str,
    index: str,
    size: int,
    made_by: Instruction | None,
    direction: Callable[[str | None], Pass],
    *,
    on_tpu: bool,
) -> LiveValue:
    if made_by is None:
        return LiveValue(name, size, None, op_name="", direction="unknown", source=SourcePosition())
    own = part_of(made_by, index)
    op_name = made_by.op_name or ""
    is_argument = made_by.opcode == "parameter" and made_by.computation.is_entry
    return LiveValue(
        name, size, array_type(own), op_name, direction(op_name or None),
        SourcePosition.exact(made_by.frames), "argument" if is_argument else made_by.opcode, is_on_host(own),
        on_tpu and memory_space(own) == VMEM,
    )  # fmt: skip
