"""What each device holds after a collective is what numpy makes of what all held before.

Random meshes, axes, groups and dtypes. A dozen collectives are one program, as starting JAX takes longer than all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shardscope.inspector.capture.protocol.values import Probe
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.elements import shard_elements

from tests.sweeps import examples

from .conftest import Captured

Blocks = list[np.ndarray]


def add(blocks: Blocks) -> Blocks:
    total = blocks[0]
    for block in blocks[1:]:
        total = total + block
    return [total] * len(blocks)


def scatter(blocks: Blocks) -> Blocks:
    return np.split(add(blocks)[0], len(blocks))


def exchange(blocks: Blocks) -> Blocks:
    pieces = [np.split(block, len(blocks)) for block in blocks]
    return [np.concatenate([piece[k] for piece in pieces]) for k in range(len(blocks))]


def shift(blocks: Blocks) -> Blocks:
    """To the next device; the first gets zeros."""
    return [np.zeros_like(blocks[0]), *blocks[:-1]]


CALLS: dict[str, tuple[str, Callable[[Blocks], Blocks]]] = {
    "psum": ("lax.psum(v, {axes})", add),
    "pmax": ("lax.pmax(v, {axes})", lambda blocks: [np.max(blocks, axis=0)] * len(blocks)),
    "pmin": ("lax.pmin(v, {axes})", lambda blocks: [np.min(blocks, axis=0)] * len(blocks)),
    "all_gather": ("lax.all_gather(v, {axes}, tiled=True)", lambda blocks: [np.concatenate(blocks)] * len(blocks)),
    "reduce_scatter": ("lax.psum_scatter(v, {axes}, tiled=True)", scatter),
    "all_to_all": ("lax.all_to_all(v, {axes}, 0, 0, tiled=True)", exchange),
    "ppermute": ("lax.ppermute(v, {axes}, [(k, k + 1) for k in range({size} - 1)])", shift),
}

DTYPES = ("float32", "int32", "bfloat16", "uint8", "float16")

MESHES = ((2,), (4,), (8,), (2, 2), (4, 2), (2, 4), (2, 2, 2))


@st.composite
def programs(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[str, tuple[str, ...], str]]]:
    """A mesh, and collectives over some of its axes with the dtypes of their operands."""
    sizes = draw(st.sampled_from(MESHES))
    names = "xyz"[: len(sizes)]
    axes = st.lists(st.sampled_from(names), min_size=1, unique=True).map(lambda found: tuple(sorted(found)))
    one = st.tuples(st.sampled_from(sorted(CALLS)), axes, st.sampled_from(DTYPES))
    return sizes, draw(st.lists(one, min_size=12, max_size=12))


def script(sizes: Sequence[int], calls: Sequence[tuple[str, tuple[str, ...], str]]) -> str:
    names = "xyz"[: len(sizes)]
    lines = []
    for number, (call, axes, _) in enumerate(calls):
        size = math.prod(sizes[names.index(axis)] for axis in axes)
        lines.append(f"v = values[{number}]; out.append({CALLS[call][0].format(axes=repr(axes), size=size)})")
    body = "\n    ".join(lines)
    dtypes = [dtype for *_, dtype in calls]
    return f"""
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:{math.prod(sizes)}]).reshape({tuple(sizes)}), {tuple(names)})
def body(values):
    out = []
    {body}
    return out
fn = jax.shard_map(body, mesh=mesh, in_specs=P({tuple(names)}), out_specs=P({tuple(names)}), check_vma=False)
random = np.random.default_rng(0)
fn_inputs = ([jnp.array(random.integers(0, 9, ({math.prod(sizes)} * 8, 3))).astype(d) for d in {dtypes}],)
"""


def arrays(probe: Probe) -> dict[tuple[int, ...], np.ndarray]:
    found = {}
    for number, shard in enumerate(probe.shards):
        elements: Any = shard_elements(probe, number)
        found[shard.coordinates] = np.array(elements).reshape(probe.shape)
    return found


@settings(max_examples=examples(2, 4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs())
def test_each_collective(program: Any, captured: Captured) -> None:
    sizes, calls = program
    names = "xyz"[: len(sizes)]
    report = inspect(captured(script(sizes, calls), name="program.py"))
    inside = [value for value in report.probes if value.probe.path]
    assert len(inside) == 2 * len(calls)
    for (call, axes, dtype), before, after in zip(calls, inside[::2], inside[1::2], strict=True):
        assert (before.primitive, after.primitive, before.probe.dtype) == (call, call, dtype)
        held, got = arrays(before.probe), arrays(after.probe)
        over = [names.index(axis) for axis in axes]
        for coordinates, value in got.items():
            group = sorted(
                place for place in held
                if all(place[n] == coordinates[n] for n in range(len(sizes)) if n not in over)
            )  # fmt: skip
            wanted = CALLS[call][1]([held[place] for place in group])[group.index(coordinates)]
            assert np.array_equal(value, wanted), (call, axes, dtype, coordinates)
