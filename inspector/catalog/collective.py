"""The types of an entry in the catalogue of collectives."""

from __future__ import annotations

import math
from typing import Literal

from ..records import dataclass

State = Literal["varying", "invariant", "unreduced", "reduced"]
"""Variance of a value over a mesh axis.

Varying: each device may hold another value. Invariant: all hold the same. Unreduced: each holds a summand of the
value that is meant. Reduced: all hold the same, and the cotangent is unreduced.
"""

Sides = Literal["equal", "gathered", "scattered", "apart"]
"""Results' types: as the operands'; larger or smaller by the number of devices along a dimension; or independent."""

Pattern = Literal["ring", "exchange", "pairs"]
"""Senders and receivers: each device to the next, each to every other, or by explicit pairs."""

SLICE = "dynamic_slice"
"""The equivalent of the 2023 document's `pscatter`: each device keeps its block, found by `axis_index`."""


@dataclass(frozen=True, slots=True)
class CollectiveRule:
    """One primitive, over the axes that it names.

    `functions` are what a user calls to get it. A value that is `takes` over the axes becomes one that is `gives`;
    `takes` is None for a primitive that takes no array, and over other axes nothing changes. `transpose` is the
    primitive that it transposes to, or what JAX writes instead; None where it is not linear. `equal` tells that all
    devices of a group hold the same result, whatever its type. `aliases` are names that other versions of JAX have for
    the same, or for what types and lowers alike. `lowers_to` is the kind of which it is, None where nothing is
    communicated.
    """

    primitive: str
    functions: tuple[str, ...]
    takes: State | None
    gives: State
    transpose: str | None
    equal: bool
    summary: str
    example: str
    note: str = ""
    aliases: tuple[str, ...] = ()
    lowers_to: str | None = None

    @property
    def is_cast(self) -> bool:
        """True if it changes the type only: every device keeps its value."""
        return self.lowers_to is None and self.takes is not None


@dataclass(frozen=True, slots=True)
class CollectiveKind:
    """One kind: its spellings, what it sends, and the primitives that are of it.

    `hlo` are opcodes, whose asynchronous halves have `-start` and `-done` appended; `fused` the opcode and the
    computation of a fusion that has the effect of one (TPU); `custom_calls` what StableHLO calls by name; `partners`
    the opcodes at the other end; `transfers` what libtpu's runtime calls it between slices; `also` are
    other names of it. All of the data goes round `passes` times; `whole` where a device keeps no part of it at home.
    `at_most` where only a run tells how much of the buffers is sent: any part, or all of it.
    """

    name: str
    summary: str
    stablehlo: tuple[str, ...] = ()
    hlo: tuple[str, ...] = ()
    fused: tuple[str, str] | None = None
    custom_calls: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    transfers: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    sides: Sides = "equal"
    pattern: Pattern = "ring"
    passes: int = 1
    whole: bool = False
    at_most: bool = False
    reduces: bool = False
    primitives: tuple[CollectiveRule, ...] = ()

    def wire_bytes(self, group_size: int | None, bytes_in: int | None, bytes_out: int | None) -> int | None:
        """Return the bytes that each device sends in a bandwidth-optimal algorithm; None where a size is unknown.

        With groups of n, an all-gather and a reduce-scatter send (n-1)/n of the larger side, an all-reduce is one of
        each (Chan et al., "Collective communication: theory, practice, and experience", 2007), an all-to-all keeps 1/n
        at home.
        """
        if self.pattern == "pairs":
            return bytes_in
        if group_size is None:
            return None
        if group_size <= 1:
            return 0
        size = bytes_out if self.sides == "gathered" else bytes_in
        if size is None or self.whole:
            return size
        return math.ceil(size * self.passes * (group_size - 1) / group_size)

    def volume(self, group_size: int, bytes_in: int, bytes_out: int) -> int:
        """Return the bytes that a cost is about: the whole array's, or in an exchange those of all devices together."""
        if self.pattern == "exchange":
            return bytes_in * group_size
        return bytes_out if self.sides == "gathered" else bytes_in


@dataclass(frozen=True, slots=True)
class FormerName:
    """A name that a document has, but no JAX, or for something else; `primitive` is today's to read about."""

    name: str
    primitive: str
    note: str
