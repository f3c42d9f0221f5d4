"""What is alive on a device when most memory is taken, which line made it, and whether it fits on the target.

XLA writes it beside the optimized program, one value a line: `    copy-start{0}: 8388608 bytes (cumulative: …)`
(xla/service/buffer_assignment.cc). The numbers are of the schedule, before values share buffers.
"""

from __future__ import annotations

import re

from ...parsers.hlo import HloModule, Instruction
from ..capture.model import Capture
from ..collectives.origin import direction_of
from ..ir.derived import derived
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..ir.types import array_type, leaves
from ..report import LiveValue, PeakMemory, SourcePosition
from .places import machine_of

MAX_VALUES = 1000
"""Values that are kept, the largest first."""

_VALUE = re.compile(rb"^\s+(?P<name>[^\s{]+)\{(?P<index>[\d,\s]*)\}:\s(?P<size>\d{1,18}) bytes", re.MULTILINE)


def peak_memory(program: Program) -> PeakMemory | None:
    """The peak by the compiler's account; None where it gives none.

    The capacity is that of the device on a target that there are figures for.
    """
    capture, stage = program.capture, program.stage("hlo")
    account = capture.memory.peak if capture.memory is not None else None
    listed = b"" if capture.peak is None else capture.peak.data
    alive = _made_by(listed, None) if stage is None else _alive(stage, listed)
    if not account and not alive:
        return None
    machine = machine_of(program)
    capacity = None if machine is None else int(machine.chip.figure("hbm_bytes") * machine.share)
    return PeakMemory(_most(capture, account, alive), capacity, alive)


def _most(capture: Capture, account: int | None, alive: tuple[LiveValue, ...]) -> int:
    """The most that the three accounts claim: not all backends fill in all of them."""
    parts = capture.memory
    held = 0
    if parts is not None:
        held = sum(size or 0 for size in (parts.arguments, parts.outputs, parts.temporaries)) - (parts.aliased or 0)
    return max(account or 0, held, sum(value.bytes for value in alive))


@derived
def _alive(stage: ParsedStage, listed: bytes) -> tuple[LiveValue, ...]:
    return _made_by(listed, stage.hlo if listed else None)


def _made_by(listed: bytes, module: HloModule | None) -> tuple[LiveValue, ...]:
    known = {} if module is None else _instructions(module)
    found = []
    for match in _VALUE.finditer(listed):
        name = match["name"].decode("utf-8", "replace")
        if int(match["size"]):
            made_by = known.get(name) or (None if module is None else _renamed(name, module))
            found.append(_value(name, match["index"].decode(), int(match["size"]), made_by))
    return tuple(sorted(found, key=lambda value: -value.bytes)[:MAX_VALUES])


def _instructions(module: HloModule) -> dict[str, Instruction]:
    found: dict[str, Instruction] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            if computation.is_entry or instruction.name not in found:
                found[instruction.name] = instruction
    return found


def _renamed(name: str, module: HloModule) -> Instruction | None:
    """The instruction that was scheduled under a name; XLA renames some of them for GPUs afterwards."""
    offset = module.source.data.find(f'scheduling_name="{name}"'.encode())
    return None if offset < 0 else module.instruction_at(offset)


def _value(name: str, index: str, size: int, made_by: Instruction | None) -> LiveValue:
    if made_by is None:
        return LiveValue(name, size, None, "", "unknown", SourcePosition())
    flat = list(leaves(made_by.type))
    number = int(index) if index.strip().isdecimal() else 0
    type = array_type(flat[number] if number < len(flat) else made_by.type)
    metadata = made_by.metadata
    op_name = metadata.op_name if metadata is not None and metadata.op_name else ""
    kind = "argument" if made_by.opcode == "parameter" else made_by.opcode
    return LiveValue(
        name, size, type, op_name, direction_of(op_name or None, differentiated="transpose(jvp" in op_name),
        SourcePosition.exact(made_by.frames), kind,
    )  # fmt: skip
