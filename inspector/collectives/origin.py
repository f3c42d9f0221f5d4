"""Facts in an operation's name: the primitive, the pass, and for a collective whether user code requested it.

JAX writes the path of transformations and primitives into `op_name`, `jit(f)/transpose(jvp(g))/psum`. When XLA merges
operations it joins their names and factors out what they have in common: `jit(f)/(jvp()/a:jvp()/b)/c`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog.spellings import PRIMITIVES
from ..correspondence.partitioned import Partitioning, is_of_custom
from ..ir.name_scopes import is_path, last_components, merged_parts
from ..report import Collective, Origin, Pass


def direction_of(op_name: str | None, *, differentiated: bool) -> Pass:
    """The pass that a path names.

    In a program that was not differentiated all is forward. In one that was, a path without transformations (the
    optimizer's, or any in a shard_map up to JAX 0.7), an argument's name, and names of several passes say nothing.
    """
    if op_name is None or not is_path(op_name):
        return "unknown"
    parts = {_direction(part, differentiated=differentiated) for part in merged_parts(op_name)}
    return parts.pop() if len(parts) == 1 else "unknown"


def is_repeated(collective: Collective) -> bool:
    """Return whether the backward pass repeats a collective of the forward pass, or a part of a combined one."""
    names = (collective.op_name, *(part.op_name for part in collective.parts))
    return collective.direction == "recompute" or any(
        _direction(each, differentiated=True) == "recompute"
        for name in names
        if name is not None and is_path(name)
        for each in merged_parts(name)
    )


def written_by(origin: Origin, direction: Pass) -> Origin:
    """The origin by names alone: a collective of the program in its backward pass is taken to be derived by JAX."""
    return "autodiff" if origin == "user" and direction == "backward" else origin


def _direction(path: str, *, differentiated: bool) -> Pass:
    if "rematted_computation" in path:
        return "recompute"
    if "transpose(" in path:
        return "backward"
    return "forward" if "jvp(" in path or not differentiated else "unknown"


MARK = "is_spmd_generated"
"""The frontend attribute that XLA's partitioner gives to what it inserts; XLA has it since JAX 0.12."""


def origin_of(
    op_name: str | None,
    channel: str | None,
    marks: Mapping[str, str],
    partitioning: Partitioning | None,
    instruction: str = "",
) -> Origin:
    """Return the origin of a collective; its name decides where the partitioner's stages were not recorded."""
    known = None if partitioning is None or channel is None else partitioning.channels.get(channel)
    if known == "user" or is_of_custom(op_name, instruction):
        return "user"
    if marks.get(MARK) == "true":
        return "partitioner"
    if op_name is not None and any(name in PRIMITIVES for name in last_components(op_name)):
        return "user"
    return "unknown" if partitioning is None else known or partitioning.origin(op_name)
