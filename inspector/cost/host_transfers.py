"""Copies between a device's memory and its host's: XLA keeps what is offloaded in memory space 5, `S(5)` in a layout.

Memory spaces: xla/service/memory_space_assignment, and xla/layout.h of `kHostMemorySpace`. On TPUs space 1 is VMEM.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...parsers.errors import ParseError
from ...parsers.hlo import ArrayShape, HloType, Instruction, TupleShape, parse_layout
from ...parsers.hlo.types import leaves
from ..execution_counts.hlo_executions import HloExecutions, hlo_executions
from ..ir.derived import derived
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from ..report import HostTransfer, SourcePosition

HOST = 5
VMEM = 1

MOVING = frozenset({"copy", "slice", "dynamic-slice", "dynamic-update-slice"})
"""Opcodes that move values from one memory to another; asynchronous ones end in `-start`."""


def is_on_host(type: HloType) -> bool:
    """Return whether a value of this type is in the host's memory."""
    return memory_space(type) == HOST


def memory_space(type: HloType) -> int:
    """The number in the layout of an array; 0, the device's own memory, where there is none."""
    if not isinstance(type, ArrayShape) or type.layout is None or "S(" not in type.layout:
        return 0
    try:
        return parse_layout(type.layout).memory_space
    except ParseError:
        return 0


@derived
def host_transfers(stage: ParsedStage) -> tuple[HostTransfer, ...]:
    """The host transfers of the compiled program, in text order."""
    executions = hlo_executions(stage)
    if executions is None or b"S(%d)" % HOST not in stage.source.data:
        return ()
    return tuple(_transfers(executions))


def _transfers(executions: HloExecutions) -> Iterator[HostTransfer]:
    for instruction in executions.module.with_opcode({*MOVING, *(f"{opcode}-start" for opcode in MOVING)}):
        ends = _ends(instruction)
        if ends is not None and is_on_host(ends[0]) != is_on_host(ends[1]):
            is_update = instruction.opcode.startswith("dynamic-update-slice")
            moved = array_type(ends[0] if is_update else ends[1])  # of a slice or an update, only the part
            yield HostTransfer(
                name=instruction.name,
                direction="from host" if is_on_host(ends[0]) else "to host",
                type=moved,
                bytes=moved.bytes,
                executions=executions.of(instruction.computation.name).count,
                source=SourcePosition.exact(instruction.frames),
            )


def _ends(instruction: Instruction) -> tuple[HloType, HloType] | None:
    """Return the types read and written; for an update of a slice these are the update and the full array."""
    opcode, type = instruction.opcode.removesuffix("-start"), instruction.type
    operands = [instruction.computation.instruction(name) for name in instruction.operands]
    types = [each.type for each in operands if each is not None]
    read = 1 if opcode == "dynamic-update-slice" else 0
    if len(types) != len(operands) or len(types) <= read:
        return None
    if instruction.opcode == "copy-start":
        written = next(leaves(type), None)
    elif instruction.opcode.endswith("-start"):
        written = (
            next(leaves(type.elements[1]), None) if isinstance(type, TupleShape) and len(type.elements) > 1 else None
        )
    else:
        written = type
    return None if written is None else (types[read], written)
