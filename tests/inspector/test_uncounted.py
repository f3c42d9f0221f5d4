"""Communication without collectives: what kernels do on other devices, and calls of which nothing is known."""

from __future__ import annotations

import textwrap
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.text import print_report
from shardscope.inspector.report import Report

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

def kernel(body):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def call(x):
        return pl.pallas_call(
            body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), name=body.__name__,
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_specs=pl.BlockSpec(memory_space=pl.ANY),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2)(x)
    return call

remote, local = kernel(to_neighbour), kernel(at_home)
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


def test_a_remote_copy_is_communication(tmp_path: Path) -> None:
    (found,) = traced(tmp_path, "remote").uncounted
    line = next(number for number, text in enumerate(KERNELS.splitlines(), 1) if text.endswith("# remote"))
    assert (found.name, found.does, found.type) == ("to_neighbour", "copy", "f32[8,128]")
    assert (found.source.line, found.source.confidence) == (line, "exact")


def test_a_copy_at_home_is_none(tmp_path: Path) -> None:
    assert traced(tmp_path, "local").uncounted == ()


@pytest.mark.parametrize("target", ["my_fa4", "nccl_thing", "mosaic_gpu_v2"])
def test_of_an_unknown_call_nothing_is_claimed(tmp_path: Path, target: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(textwrap.dedent(CALLS).lstrip().replace("TARGET", target))
    report = inspect(load(str(path)))
    assert [(each.name, each.does) for each in report.uncounted] == [(target, "unknown")]
    text = printed(report)
    assert "No collectives" not in text
    (line,) = [line for line in text.splitlines() if "may communicate" in line]
    assert target in line


@pytest.mark.parametrize("target", ["TopK", "__cublas$gemm", "lapack_sgesdd_ffi", "tpu_custom_call"])
def test_known_calls_stay_on_their_device(tmp_path: Path, target: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(textwrap.dedent(CALLS).lstrip().replace("TARGET", target))
    assert inspect(load(str(path))).uncounted == ()
    config = 'custom_call_target="tpu_custom_call", backend_config={"custom_call_config":{"has_communication":true}}'
    path.write_text(path.read_text().replace('custom_call_target="tpu_custom_call"', config))
    assert len(inspect(load(str(path))).uncounted) == (target == "tpu_custom_call")
