"""A program as JAX traced it, and what JAX knows of it when it is compiled: shardings and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
from jax._src import sharding_impls, tree_util
from jax._src.lib import xla_client

from ...protocol.events import Arguments, Memory, Outputs
from ...protocol.trace import Value
from ..channel import Channel
from .avals import key_of, mesh_key, spec_text


class TracedProgram(NamedTuple):
    """A program as JAX traced it, and what the user calls its arguments and results.

    `leaves` are arrays, types or shardings of the arguments. `lower` gives a `jax.stages.Lowered`; it takes
    `lowering_platforms`.
    """

    jaxpr: Any
    arguments: tuple[Value, ...]
    outputs: tuple[Value, ...]
    leaves: Sequence[Any]
    lower: Callable[..., Any]


def send_actual(
    arguments: tuple[Value, ...], outputs: tuple[Value, ...], compiled: Any, channel: Channel, mesh: Any = None
) -> None:
    """Send the arguments and results with the shardings that a compiled program has, on the axes of its mesh."""
    channel.send(Arguments(with_actual(arguments, compiled_shardings(compiled, "input"), mesh)))
    channel.send(Outputs(with_actual(outputs, compiled_shardings(compiled, "output"), mesh)))


def compiled_shardings(compiled: Any, side: str) -> list[Any]:
    """Return the `input` or `output` shardings; none for programs with other values beside them, such as Refs."""
    return leaves_of(compiled, f"{side}_shardings")


def leaves_of(compiled: Any, name: str) -> list[Any]:
    """The leaves of a tree that JAX makes of what it knows of a program, which is not made; none where it cannot be.

    A class of the script may refuse what is no array in the places of its arrays. Touches the function of
    `jax._src.tree_util` by which JAX makes the tree (0.7 to 0.12).
    """
    own = tree_util.tree_unflatten
    tree_util.tree_unflatten = lambda tree, leaves: list(leaves)
    try:
        return list(jax.tree.leaves(getattr(compiled, name), is_leaf=lambda leaf: leaf is None))
    except ValueError:
        return []
    finally:
        tree_util.tree_unflatten = own


def with_actual(values: tuple[Value, ...], leaves: list[Any], mesh: Any) -> tuple[Value, ...]:
    """The same with the shardings of the compiled program; unchanged where those are of others.

    `mesh` has the axes of those that XLA gives without names.
    """
    if len(leaves) != len(values):
        return values
    return tuple(_with_actual(value, leaf, mesh) for value, leaf in zip(values, leaves, strict=True))


def _with_actual(value: Value, leaf: Any, mesh: Any) -> Value:
    if (own := spec_text(leaf)) is not None:
        return replace(value, actual=own, actual_mesh=key_of(leaf))
    spec = spec_text(_on_mesh(leaf, mesh))
    return replace(value, actual=spec, actual_mesh=None if spec is None else mesh_key(mesh))


def _on_mesh(sharding: Any, mesh: Any) -> Any:
    """The PartitionSpec of a sharding of XLA's; None where the axes of the mesh do not form it.

    By the function with which JAX does so itself (`jax._src.sharding_impls`, 0.7 to 0.12).
    """
    parse = getattr(sharding_impls, "parse_flatten_op_sharding", None)
    if parse is None or mesh is None or sharding is None:
        return None
    try:
        (spec,) = parse(tiled(getattr(sharding, "_hlo_sharding", sharding)), mesh)
    except (ValueError, TypeError, NotImplementedError, AssertionError, StopIteration, AttributeError):
        return None
    return spec


def tiled(sharding: Any) -> Any:
    """A sharding of XLA's by tiles; JAX aborts on one by the axes of a mesh, which newer compilers give."""
    known = xla_client.HloSharding.from_proto(sharding) if isinstance(sharding, xla_client.OpSharding) else sharding
    return known.v3_to_v2_sharding() if hasattr(known, "v3_to_v2_sharding") else known


def memory_of(compiled: Any) -> Memory | None:
    """Sizes; a figure that this backend or this JAX does not give is None."""
    try:
        stats = compiled.memory_analysis()
    except (NotImplementedError, AttributeError, jax.errors.JaxRuntimeError):
        return None
    names = {
        "arguments": "argument_size_in_bytes",
        "outputs": "output_size_in_bytes",
        "temporaries": "temp_size_in_bytes",
        "aliased": "alias_size_in_bytes",
        "code": "generated_code_size_in_bytes",
        "peak": "peak_memory_in_bytes",
    }
    figures = {key: getattr(stats, name, None) for key, name in names.items()}
    held = [getattr(stats, f"host_{part}_size_in_bytes", None) for part in ("argument", "output", "temp", "alias")]
    known = [size for size in held if size is not None]
    figures["host"] = sum(known[:3]) - known[3] if len(known) == len(held) else None
    return Memory(**figures) if any(figure is not None for figure in figures.values()) else None
