"""The devices that kernels copy to: where Pallas' own interpreter puts what each device sends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import UncountedCommunication
from shardscope.parsers.source import Source

from tests.sweeps import sampled, xla_flags

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 types and names kernels otherwise")

KERNELS = """
import json, sys
import jax, jax.numpy as jnp
from functools import partial
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((2, 3), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
index = lax.axis_index

def exchange(device, kind="MESH", around=lambda start, x_ref: start()):
    def kernel(x_ref, y_ref, send, recv):
        number = getattr(pl.DeviceIdType, kind)
        copy = pltpu.make_async_remote_copy(x_ref, y_ref, send, recv, device_id=device(x_ref), device_id_type=number)
        around(copy.start, x_ref)
        copy.wait()

    @partial(jax.shard_map, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")), check_vma=False)
    def call(x):
        return pl.pallas_call(
            kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name="exchange",
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_specs=pl.BlockSpec(memory_space=pl.ANY),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2, interpret=pltpu.InterpretParams())(x)
    return jax.jit(call)

def next_in(axis):
    return lax.rem(index(axis) + 1, lax.axis_size(axis))

def whether(condition):
    return lambda start, x_ref: pl.when(condition(x_ref))(start)

def once(start, x_ref):
    lax.fori_loop(0, 1, lambda number, nothing: (start(), nothing)[1], 0)

def scoped(start, x_ref):
    pl.run_scoped(lambda semaphore: start(), pltpu.SemaphoreType.REGULAR)

def repeated(start, x_ref):
    lax.while_loop(lambda number: number < 1, lambda number: (start(), number + 1)[1], 0)

def nested(start, x_ref):
    pl.when(index("x") < 2)(lambda: once(lambda: scoped(start, x_ref), x_ref))

def called(start, x_ref):
    jax.jit(lambda: start())()

def carried(number):
    return lax.fori_loop(0, 2, lambda _, carry: carry, number)

def repeatedly(number):
    return lax.while_loop(lambda carry: carry[1] < 1, lambda carry: (carry[0], carry[1] + 1), (number, 0))[0]

along_y = exchange(lambda _: (index("x"), next_in("y")))
along_both = exchange(lambda _: (1 - index("x"), next_in("y")))
back = exchange(lambda _: (index("x"), jnp.where(index("y") == 0, 2, index("y") - 1)))
numbered = exchange(lambda _: lax.rem(index("x") * 3 + index("y") + 2, 6), "LOGICAL")
joined = exchange(lambda _: lax.rem(index(("x", "y")) + 5, 6), "LOGICAL")
named = exchange(lambda _: {"x": 1 - index("x")})
by_all = exchange(lambda _: (index("x"), next_in("y")), around=whether(lambda x_ref: index("x") < 2))
looped = exchange(lambda _: (1 - index("x"), index("y")), around=once)
in_scope = exchange(lambda _: (1 - index("x"), index("y")), around=scoped)
in_while = exchange(lambda _: (1 - index("x"), index("y")), around=repeated)
in_all = exchange(lambda _: (index("x"), next_in("y")), around=nested)
in_call = exchange(lambda _: (index("x"), next_in("y")), around=called)
from_scope = exchange(lambda _: (index("x"), pl.run_scoped(lambda _: next_in("y"), pltpu.SemaphoreType.REGULAR)))
from_branch = exchange(lambda _: (index("x"), lax.cond(index("y") == 0, lambda: 2, lambda: index("y") - 1)))
from_loop = exchange(lambda _: (index("x"), carried(next_in("y"))))
from_while = exchange(lambda _: (index("x"), repeatedly(next_in("y"))))
by_some = exchange(lambda _: (index("x"), next_in("y")), around=whether(lambda x_ref: index("y") < 2))
by_value = exchange(lambda _: (index("x"), next_in("y")), around=whether(lambda x_ref: x_ref[0, 0] > 0))
to_value = exchange(lambda x_ref: (index("x"), x_ref[0, 0].astype(jnp.int32)))
inputs = (jnp.repeat(jnp.arange(6.0), 8)[:, None] * jnp.ones((1, 128)),)

if __name__ == "__main__":
    for name in sys.argv[1:]:
        found = globals()[name](*inputs)[::8, 0].astype(int)
        print(json.dumps(sorted((int(source), target) for target, source in enumerate(found))))
"""

MOVED = {
    "along_y": ("y",),
    "along_both": ("x", "y"),
    "back": ("y",),
    "numbered": ("x", "y"),
    "joined": ("x", "y"),
    "named": ("x",),
    "by_all": ("y",),
    "looped": ("x",),
    "in_scope": ("x",),
    "in_while": ("x",),
    "in_all": ("y",),
    "in_call": ("y",),
    "from_scope": ("y",),
    "from_branch": ("y",),
    "from_loop": ("y",),
    "from_while": ("y",),
}
"""The functions whose every device sends, and the axes that they say it for."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.py"
    path.write_text(KERNELS)
    return path


@pytest.fixture(scope="module")
def moved(script: Path) -> dict[str, list[list[int]]]:
    """What the interpreter moves: for each function, who sent what each device has at the end."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": xla_flags(6),
    }
    done = subprocess.run([sys.executable, script, *MOVED], env=environment, capture_output=True, check=True)
    return dict(zip(MOVED, map(json.loads, done.stdout.splitlines()), strict=True))


def copied(script: Path, function: str) -> UncountedCommunication:
    final = last_capture(Request(f"{script}:{function}", only_trace=True))
    assert final.failure is None, final.failure
    (found,) = inspect(final).uncounted
    return found


@pytest.mark.parametrize("function", sampled(MOVED, 6, 2))
def test_each_device_sends_where_it_says(script: Path, moved: dict[str, list[list[int]]], function: str) -> None:
    found = copied(script, function)
    assert list(map(list, found.pairs)) == moved[function]
    assert tuple(map(str, found.axes or ())) == MOVED[function]


def test_only_some_send(script: Path) -> None:
    found = copied(script, "by_some")
    assert found.pairs == tuple((3 * x + y, 3 * x + y + 1) for x in range(2) for y in range(2))


@pytest.mark.once
def test_by_a_value_each_may_send(script: Path) -> None:
    assert copied(script, "by_value").pairs == copied(script, "along_y").pairs


def test_a_device_that_depends_on_a_value_is_unknown(script: Path) -> None:
    found = copied(script, "to_value")
    assert (found.does, found.axes, found.pairs) == ("copy", None, ())


def test_on_too_large_a_mesh_nothing_is_evaluated_for_long(script: Path) -> None:
    """The same kernel on ten billion devices, which only a file can claim."""
    final = last_capture(Request(f"{script}:along_y", only_trace=True))
    (jaxpr,) = (stage for stage in final.stages if stage.name == "jaxpr")
    data = jaxpr.source.data.replace(b'["x",2]', b'["x",100000]').replace(b'["y",3]', b'["y",100000]')
    assert data != jaxpr.source.data
    stages = tuple(replace(each, source=Source("jaxpr", data)) if each is jaxpr else each for each in final.stages)
    (found,) = inspect(replace(final, stages=stages)).uncounted
    assert (found.does, found.axes, found.pairs) == ("copy", None, ())


PEERS = """
import jax, jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((2, 3), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

def kernel(x_ref, y_ref):
    number = lax.axis_index("x") * 3 + lax.axis_index("y")
    peer = plgpu.remote_ref(y_ref, lax.rem(number + 4, 6), pl.DeviceIdType.LOGICAL)
    peer[...] = x_ref[...]

@jax.shard_map(mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")), check_vma=False)
def fn(x):
    return plgpu.kernel(kernel, out_%s=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

inputs = (jax.ShapeDtypeStruct((6 * 8, 128), jnp.float32),)
"""


def test_a_reference_on_another_gpu_says_which(tmp_path: Path) -> None:
    """The pairs are by the kernel's own arithmetic, for each device."""
    pytest.importorskip("jax.experimental.pallas.mosaic_gpu")
    path = tmp_path / "script.py"
    path.write_text(PEERS % ("type" if jax.__version_info__ >= (0, 11) else "shape"))
    report = inspect(last_capture(Request(f"{path}:fn", only_trace=True, devices=6)))
    (copy,) = report.uncounted
    assert (copy.does, str(copy.type)) == ("copy", "f32[8,128]")
    assert copy.pairs == tuple((number, (number + 4) % 6) for number in range(6))
