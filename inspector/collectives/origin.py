"""Who asked for a collective: the user's program, the partitioner, or a later pass of the compiler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...parsers.hlo import HloModule
from ..catalog.spellings import HLO_OPCODES, PRIMITIVES
from ..report import Origin
from .op_name import last_components, merged_parts

MARK = "is_spmd_generated"
"""The frontend attribute that XLA's partitioner gives to what it inserts; XLA has it since JAX 0.12."""

CUSTOM = "custom_partitioning"
"""The operation whose partitioning is a function of the user's."""


@dataclass(frozen=True)
class Partitioning:
    """The collectives that went into the partitioner and came out of it, by their channels and names.

    Optimized modules keep a collective's channel, or, when they merge several, their names.
    """

    channels_before: frozenset[str]
    names_before: frozenset[str]
    channels_after: frozenset[str]
    names_after: frozenset[str]


def partitioning_of(before: HloModule, after: HloModule) -> Partitioning:
    """What the partitioner did, from the modules right before and after it."""
    sides = []
    for module in (before, after):
        collectives = module.with_opcode(HLO_OPCODES)
        names = (c.metadata.op_name for c in collectives if c.metadata is not None)
        sides += [_known(c.attributes.get("channel_id") for c in collectives), _known(names)]
    return Partitioning(*sides)


def _known(texts: Iterable[str | None]) -> frozenset[str]:
    return frozenset(text for text in texts if text)


def origin_of(
    op_name: str | None,
    channel: str | None,
    marks: Mapping[str, str],
    partitioning: Partitioning | None,
    instruction: str = "",
) -> Origin:
    """Who asked for a collective; its name decides where the partitioner's stages were not recorded.

    What the user's own partitioning of an operation holds is named after that operation; the instruction, after the
    primitive.
    """
    if (
        op_name is not None
        and last_components(op_name) == (CUSTOM,)
        and instruction.rstrip(".0123456789") in PRIMITIVES
    ):
        return "user"
    if marks.get(MARK) == "true":
        return "partitioner"
    if op_name is not None and any(name in PRIMITIVES for name in last_components(op_name)):
        return "user"
    if partitioning is None:
        return "unknown"
    if not partitioning.names_before | partitioning.channels_before and op_name is None:
        return "partitioner"  # nobody else asked for any; what later passes make anew has neither name nor channel
    if channel in partitioning.channels_before:
        return "user"
    if channel in partitioning.channels_after:
        return "partitioner"
    return _by_name(op_name, partitioning)


def _by_name(op_name: str | None, partitioning: Partitioning) -> Origin:
    """The one origin that all names agree on that were merged into this one."""
    if op_name is None:
        return "unknown"
    before, after = partitioning.names_before, partitioning.names_after
    origins: set[Origin] = {
        "user" if name in before else "partitioner" if name in after else "compiler" for name in merged_parts(op_name)
    }
    return origins.pop() if len(origins) == 1 else "unknown"
