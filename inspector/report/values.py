"""Values: over which axes they vary, what each device held, where devices part, and which take memory at the peak."""

from __future__ import annotations

from typing import Literal

from ...parsers.record import Record
from ..capture.protocol.values import Probe
from ..ir.types import ArrayType, JaxType
from .collectives import Collective, Pass
from .position import SourcePosition


class AxisEntry(Record, frozen=True):
    """The origin of a variance over an axis.

    `equation` is its id; `input` is the number of the one by which it came into that equation, a shard_map, and `spec`
    that input's spec as the user writes it.
    """

    axis: str
    equation: str
    primitive: str
    source: SourcePosition
    input: int | None = None
    spec: str = "in_specs"

    @property
    def by(self) -> str:
        """`pcast`, or `in_specs[1]` of a shard_map."""
        return self.primitive if self.input is None else self.spec


class VariableVariance(Record, frozen=True):
    """The mesh axes over which one equation's output varies, is unreduced, or reduced.

    They are JAX's own types where the shard_map has its check on; where it is off they are `inferred`, and say which
    values may really differ. `hidden` are axes over which the value may differ although JAX's type says it does not.
    `entered` tells for each axis, `hidden` ones included, where it came from; `left` are axes that the operands have
    and the output has not.
    """

    equation: str
    primitive: str
    value: str
    type: JaxType
    varying: tuple[str, ...]
    unreduced: tuple[str, ...]
    reduced: tuple[str, ...]
    source: SourcePosition
    inferred: bool = False
    hidden: tuple[str, ...] = ()
    entered: tuple[AxisEntry, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def changes_axes(self) -> bool:
        """True if an axis enters or leaves here, or the type hides one."""
        return bool(self.left or self.hidden or any(entry.equation == self.equation for entry in self.entered))


class ProbedValue(Record, frozen=True):
    """A recorded value and where it is from.

    `name` is the variable's, or the path of an argument or output; `primitive` and the `axes` that it names are the
    equation's. `collective` is the compiled one, of a value of the evaluated program.
    """

    probe: Probe
    type: JaxType
    name: str
    primitive: str
    axes: tuple[str, ...]
    source: SourcePosition
    collective: Collective | None = None

    @property
    def label(self) -> str:
        """`psum(x)` for an operand, `y = psum` for a result, `output [0]`."""
        if not self.probe.path:
            return f"{self.probe.when} {self.name}"
        return f"{self.primitive}({self.name})" if self.probe.when == "before" else f"{self.name} = {self.primitive}"


class Divergence(Record, frozen=True):
    """A value whose bits differ between devices along an axis over which it is said to be the same.

    `declared` tells who says so: JAX's `type`, our `inferred` variance where the check is off, or the `out_specs`
    through which it leaves. `iteration` is the first in which `devices`, two of those that differ, do. `is_first` is
    false for what only follows from another one.
    """

    equation: str
    primitive: str
    value: str
    type: JaxType
    axis: str
    declared: Literal["type", "inferred", "out_specs"]
    iteration: tuple[int, ...]
    devices: tuple[int, ...]
    is_first: bool
    source: SourcePosition


class LiveValue(Record, frozen=True):
    """A value that takes memory at the peak, by the instruction that made it, `opcode`, or `argument`.

    `type` is None where that is not known, `on_host` is true of what is in the host's memory, and `in_vmem` of what is
    in a TPU's memory on the chip.
    """

    name: str
    bytes: int
    type: ArrayType | None
    op_name: str
    direction: Pass
    source: SourcePosition
    opcode: str = ""
    on_host: bool = False
    in_vmem: bool = False

    @property
    def elsewhere(self) -> bool:
        """True if it takes none of the device's main memory."""
        return self.on_host or self.in_vmem


class HostTransfer(Record, frozen=True):
    """A copy between a device's memory and its host's: the bytes of one execution, and how often it is executed."""

    name: str
    direction: Literal["to host", "from host"]
    type: ArrayType
    bytes: int | None
    executions: int | None
    source: SourcePosition


class PeakMemory(Record, frozen=True):
    """The memory that the program takes on one device.

    `bytes` are those of its arguments, outputs, temporaries and code together, each byte counted once. `peak` is the
    compiler's own figure of the most that is in use, None where it contradicts these parts. `capacity` is that of a
    device of the target, None where it is not known; `host` is what is taken of the host's memory for each device.
    """

    bytes: int
    capacity: int | None
    peak: int | None = None
    host: int | None = None
    transfers: tuple[HostTransfer, ...] = ()

    @property
    def fits(self) -> bool | None:
        """True if the device has that much memory; None if unknown."""
        return None if self.capacity is None else self.bytes <= self.capacity
