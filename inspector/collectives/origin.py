"""Facts in an operation's name: the primitive, the pass, and for a collective whether user code requested it.

JAX writes the path of transformations and primitives into `op_name`, `jit(f)/transpose(jvp(g))/psum`. When XLA merges
operations it joins their names and factors out what they have in common: `jit(f)/(jvp()/a:jvp()/b)/c`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...parsers.hlo import HloModule
from ..catalog.spellings import HLO_OPCODES, PRIMITIVES
from ..ir.name_scopes import is_path, last_components, merged_parts
from ..report import Origin, Pass


def direction_of(op_name: str | None, *, differentiated: bool) -> Pass:
    """The pass that a path names.

    In a program that was not differentiated all is forward. In one that was, a path without transformations (the
    optimizer's, or any in a shard_map up to JAX 0.7), an argument's name, and names of several passes say nothing.
    """
    if op_name is None or not is_path(op_name):
        return "unknown"
    parts = {_direction(part, differentiated) for part in merged_parts(op_name)}
    return parts.pop() if len(parts) == 1 else "unknown"


def written_by(origin: Origin, direction: Pass) -> Origin:
    """The origin by names alone: a collective of the program in its backward pass is taken to be derived by JAX."""
    return "autodiff" if origin == "user" and direction == "backward" else origin


def _direction(path: str, differentiated: bool) -> Pass:
    if "rematted_computation" in path:
        return "recompute"
    if "transpose(" in path:
        return "backward"
    return "forward" if "jvp(" in path or not differentiated else "unknown"


MARK = "is_spmd_generated"
"""The frontend attribute that XLA's partitioner gives to what it inserts; XLA has it since JAX 0.12."""

CUSTOM = "custom_partitioning"
"""The operation whose partitioning is a function of the user's."""


@dataclass(frozen=True)
class Partitioning:
    """The collectives that went into the partitioner and came out of it, by their channels and names.

    Optimized modules keep a collective's channel, or, when they merge several, their names. `channels_of_custom` are
    those of the user's own partitioning functions.
    """

    channels_before: frozenset[str]
    names_before: frozenset[str]
    channels_after: frozenset[str]
    names_after: frozenset[str]
    channels_of_custom: frozenset[str]


def partitioning_of(before: HloModule, after: HloModule) -> Partitioning:
    """Return the partitioner's changes, from the modules right before and after it."""
    sides = []
    for module in (before, after):
        collectives = module.with_opcode(HLO_OPCODES)
        channels = (each.attributes.get("channel_id") for each in collectives)
        sides += [_known(channels), _known(each.op_name for each in collectives)]
    own = (each for each in after.with_opcode(HLO_OPCODES) if _is_of_custom(each.op_name, each.name))
    sides.append(_known(each.attributes.get("channel_id") for each in own))
    return Partitioning(*sides)


def _is_of_custom(op_name: str | None, instruction: str) -> bool:
    """Return whether it is in a user's partitioning of an operation, named after that operation."""
    named = instruction.rstrip(".0123456789").lstrip("%")
    return op_name is not None and last_components(op_name) == (CUSTOM,) and named in PRIMITIVES


def _known(texts: Iterable[str | None]) -> frozenset[str]:
    return frozenset(text for text in texts if text)


def origin_of(
    op_name: str | None,
    channel: str | None,
    marks: Mapping[str, str],
    partitioning: Partitioning | None,
    instruction: str = "",
) -> Origin:
    """Return the origin of a collective; its name decides where the partitioner's stages were not recorded."""
    if _is_of_custom(op_name, instruction) or (partitioning and channel in partitioning.channels_of_custom):
        return "user"
    if marks.get(MARK) == "true":
        return "partitioner"
    if op_name is not None and any(name in PRIMITIVES for name in last_components(op_name)):
        return "user"
    if partitioning is None:
        return "unknown"
    if not partitioning.names_before | partitioning.channels_before and op_name is None:
        return "partitioner"  # nothing else inserts any; what later passes make anew has neither name nor channel
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
