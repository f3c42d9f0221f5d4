"""Communication without collectives: what kernels do on other devices, and calls of which nothing is known."""

from __future__ import annotations

import importlib
import importlib.util
import textwrap
from io import StringIO
from pathlib import Path

import jax
import pytest
from rich.console import Console
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.catalog.custom_calls import LOCAL
from shardscope.inspector.collectives.uncounted import _function_of
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.text import print_report
from shardscope.inspector.report import Report
from shardscope.parsers.source import Frame

pytestmark = pytest.mark.once

KERNELS = """
import jax, jax.numpy as jnp
from functools import partial
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def to_neighbour(x_ref, y_ref, send, recv):
    other = lax.rem(lax.axis_index("x") + 1, 4)
    copy = pltpu.make_async_remote_copy(
        src_ref=x_ref, dst_ref=y_ref, send_sem=send, recv_sem=recv,
        device_id=(other,), device_id_type=pl.DeviceIdType.MESH)
    copy.start()  # remote
    copy.wait()

def at_home(x_ref, y_ref, send, recv):
    copy = pltpu.make_async_copy(x_ref, y_ref, send)
    copy.start()
    copy.wait()

def kernel(body, name=None, **options):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def call(x):
        return pl.pallas_call(
            body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name=name,
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_specs=pl.BlockSpec(memory_space=pl.ANY),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2, **options)(x)
    return call

def part_to_neighbour(x_ref, y_ref, send, recv):
    assert pltpu.get_tpu_info().generation == 5
    other = lax.rem(lax.axis_index("x") + 1, 4)
    first = other * 2
    copy = pltpu.make_async_remote_copy(
        src_ref=x_ref.at[0:2, pl.ds(0, 128)], dst_ref=y_ref.at[pl.ds(first, 2), pl.ds(0, 128)],
        send_sem=send, recv_sem=recv, device_id=(other,), device_id_type=pl.DeviceIdType.MESH)
    pl.when(other > 0)(copy.start)
    copy.wait()

def to_all(x_ref, y_ref, send, recv):
    copies = [pltpu.make_async_remote_copy(
        src_ref=x_ref, dst_ref=y_ref, send_sem=send, recv_sem=recv, device_id=(lax.rem(lax.axis_index("x") + step, 4),),
        device_id_type=pl.DeviceIdType.MESH) for step in (1, 2, 3)]
    for copy in copies:
        copy.start()
    for copy in copies:
        copy.wait()

to_each = kernel(to_all, "to_all")
remote, local = kernel(to_neighbour, "to_neighbour"), kernel(at_home)
unnamed, part = kernel(to_neighbour), kernel(part_to_neighbour)
stated = kernel(at_home, cost_estimate=pl.CostEstimate(flops=1234, bytes_accessed=5678, transcendentals=0))
inputs = (jax.ShapeDtypeStruct((32, 128), jnp.float32),)
"""

CALLS = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] custom-call(p), custom_call_target="TARGET"
  ROOT r = f32[8] negate(q)
}
"""


def traced(tmp_path: Path, function: str) -> Report:
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS)
    *_, final = capture(Request(f"{script}:{function}", only_trace=True))
    assert final.failure is None, final.failure
    return inspect(final)


def printed(report: Report) -> str:
    text = StringIO()
    print_report(report, Console(width=200, file=text))
    return text.getvalue()


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 types and names kernels otherwise")
def test_copies_at_one_line_are_counted(tmp_path: Path) -> None:
    report = traced(tmp_path, "to_each")
    assert sum(each.count for each in report.uncounted) == 3
    (row,) = [line for line in printed(report).splitlines() if "not counted" in line]
    assert "3 remote copies of f32[8,128]  x" in row


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 types and names kernels otherwise")
@pytest.mark.parametrize("function", ["remote", "unnamed"])
def test_a_remote_copy_is_communication(tmp_path: Path, function: str) -> None:
    (found,) = traced(tmp_path, function).uncounted
    line = next(number for number, text in enumerate(KERNELS.splitlines(), 1) if text.endswith("# remote"))
    assert (found.name, found.does, str(found.type)) == ("to_neighbour", "copy", "f32[8,128]")
    assert (found.source.line, found.source.confidence) == (line, "exact")


def test_a_copy_at_home_is_none(tmp_path: Path) -> None:
    assert traced(tmp_path, "local").uncounted == ()


LIBTPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")


@LIBTPU
def test_of_a_slice_only_the_slice_is_copied_and_nobody_knows_how_long_it_takes(tmp_path: Path) -> None:
    """The kernel asks what it is lowered for; compiled it says itself that it communicates."""
    report = compiled(tmp_path, "part")
    (found,) = report.uncounted
    assert (found.name, found.does, str(found.type)) == ("part_to_neighbour", "copy", "f32[2,128]")
    (hlo,) = (stage for stage in report.capture.stages if stage.name == "hlo")
    assert b'"has_communication":true' in hlo.source.data
    assert report.cost is not None
    assert report.cost.at_least
    assert "bound by" not in printed(report)


@LIBTPU
def test_what_a_kernel_states_of_itself_is_its_work(tmp_path: Path) -> None:
    cost = compiled(tmp_path, "stated").cost
    assert cost is not None
    assert (cost.flops, cost.bytes, cost.at_least) == (1234, 5678, False)


def compiled(tmp_path: Path, function: str) -> Report:
    script = tmp_path / "kernels.py"
    script.write_text(KERNELS)
    *_, final = capture(Request(f"{script}:{function}", target="tpu:v5e:2x2", live=False))
    assert final.failure is None, final.failure
    return inspect(final)


@pytest.mark.parametrize("target", ["my_fa4", "nccl_thing", "mosaic_gpu_v2", "hip_send", "Pin_remote", "fft_exchange"])
def test_of_an_unknown_call_nothing_is_claimed(tmp_path: Path, target: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(textwrap.dedent(CALLS).lstrip().replace("TARGET", target))
    report = inspect(load(str(path)))
    assert [(each.name, each.does) for each in report.uncounted] == [(target, "unknown")]
    text = printed(report)
    assert "No collectives" not in text
    (line,) = [line for line in text.splitlines() if "may communicate" in line]
    assert target in line


@pytest.mark.parametrize(
    "target", ["TopK", "__cublas$gemm", "lapack_sgesdd_ffi", "tpu_custom_call", "xla.sdy.FuncResultSharding"]
)
def test_known_calls_stay_on_their_device(tmp_path: Path, target: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(textwrap.dedent(CALLS).lstrip().replace("TARGET", target))
    assert inspect(load(str(path))).uncounted == ()
    config = 'custom_call_target="tpu_custom_call", backend_config={"custom_call_config":{"has_communication":true}}'
    path.write_text(path.read_text().replace('custom_call_target="tpu_custom_call"', config))
    assert len(inspect(load(str(path))).uncounted) == (target == "tpu_custom_call")


def test_what_jaxlib_registers_stays_on_its_device() -> None:
    """Its own modules list the targets that can be partitioned along a batch: each device does its part alone."""
    names = [name for module in ("lapack", "gpu_solver", "gpu_linalg") for name in _batch_partitionable(module)]
    assert names
    assert set(names) <= LOCAL


def _batch_partitionable(module: str) -> list[str]:
    found = importlib.import_module(f"jaxlib.{module}")
    return list(found.batch_partitionable_targets()) if hasattr(found, "batch_partitionable_targets") else []


CALLBACKS = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import io_callback
scalar = jax.ShapeDtypeStruct((), jnp.float32)

@jax.jit
def step(x):
    jax.debug.print("{}", jnp.sum(x))
    y = jax.pure_callback(lambda x: np.float32(x.sum()), scalar, x)
    return y + io_callback(lambda: np.float32(1), scalar)

step_inputs = (jax.ShapeDtypeStruct((8,), jnp.float32),)
"""


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5e:2x2", marks=LIBTPU)])
def test_callbacks_are_the_hosts(tmp_path: Path, target: str) -> None:
    """Three functions of the host are called, from three lines; none is a collective between devices."""
    script = tmp_path / "callbacks.py"
    script.write_text(CALLBACKS)
    *_, final = capture(Request(f"{script}:step", target=target, live=False))
    assert final.failure is None, final.failure
    report = inspect(final)
    assert {each.does for each in report.uncounted} == {"host"}
    calls = {number for number, text in enumerate(CALLBACKS.splitlines(), 1) if "callback(" in text or "print(" in text}
    assert {each.source.line for each in report.uncounted} == calls
    assert not [each for each in report.collectives if each.stage == "hlo"]
    assert "nothing is communicated" not in printed(report)


ASYNC = """
HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

wrapped {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=add
}

ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], s32[]) WRAPPER-start(p), KIND calls=wrapped
  u = ((f32[8]), f32[8], s32[]) WRAPPER-update(s)
  ROOT d = f32[8] WRAPPER-done(u)
}
"""


@pytest.mark.parametrize(("wrapper", "kind"), [("fusion", "kind=kCustom,"), ("async", ""), ("call", "")])
def test_every_wrapper_makes_a_collective_asynchronous(tmp_path: Path, wrapper: str, kind: str) -> None:
    """In the forms of XLA's own tests of its GPU scheduler: one collective, once, with a start and a done."""
    path = tmp_path / "m.hlo"
    path.write_text(ASYNC.lstrip().replace("WRAPPER", wrapper).replace("KIND ", f"{kind} " if kind else ""))
    (found,) = inspect(load(str(path))).collectives
    assert (found.kind, found.is_async, found.groups) == ("all-reduce", True, ((0, 1, 2, 3),))


def test_a_kernel_without_a_name_has_that_of_its_function() -> None:
    """The first that is called beyond the stack of the kernel's call, however deep either is."""
    shared = [Frame("a.py", f"outer{number}", 10 + number) for number in range(3)]
    body = [Frame("a.py", name, 50) for name in ("innermost", "inner", "kernel")]
    for around in range(4):
        for depth in range(4):
            stack = body[3 - depth :] + shared[3 - around :]
            assert _function_of(stack, shared[3 - around :]) == ("kernel" if depth else "")
