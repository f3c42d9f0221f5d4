"""What takes memory when most of it is taken, in bytes of one device."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.types import ArrayType
from .collectives import Pass
from .position import SourcePosition


@dataclass(frozen=True, slots=True)
class LiveValue:
    """A value that takes memory at the peak, by the instruction that made it, `opcode`, or `argument`.

    `type` is None where that is not known.
    """

    name: str
    bytes: int
    type: ArrayType | None
    op_name: str
    direction: Pass
    source: SourcePosition
    opcode: str = ""


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The most memory that is taken on one device, and what is alive then, largest first.

    `capacity` is that of a device of the target, None where it is not known.
    """

    bytes: int
    capacity: int | None
    alive: tuple[LiveValue, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether the device has so much memory; None where that is not known."""
        return None if self.capacity is None else self.bytes <= self.capacity
