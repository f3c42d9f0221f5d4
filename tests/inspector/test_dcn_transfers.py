"""Programs of several TPU slices: what is compiled for one of them, and what goes between them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Device
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.collectives.context import AnalysisContext
from shardscope.inspector.collectives.dcn_transfers import Transfer, transfer_of
from shardscope.inspector.collectives.hlo import hlo_collectives
from shardscope.inspector.collectives.stage import collectives_of
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from shardscope.parsers.source import Source

DEVICES = tuple(Device(100_000 * (1 + n // 2) + n % 2, (n % 2, 0, 0), slice=n // 2) for n in range(4))

BETWEEN = (
    '_xla_host_transfer_handler_name="xla_megascale_runtime",_xla_host_transfer_rendezvous="psum.7_0",'
    '_xla_megascale_reduce_operation="SUM",_xla_megascale_target="{1,2}x{0:1}",'
    '_xla_megascale_transfer_type="ALL_REDUCE"'
)

ONE_SLICE = f"""\
HloModule jit_fn, is_scheduled=true, num_partitions=2

ENTRY %main (p: f32[8,128]) -> f32[8,128] {{
  %p = f32[8,128]{{1,0}} parameter(0)
  %inside = f32[16,128]{{1,0}} all-gather(%p), channel_id=1, replica_groups={{{{0,1}}}}, dimensions={{0}}
  %after-all = token[] after-all()
  %send = (f32[8,128]{{1,0}}, u32[], token[]) send(%p, %after-all), channel_id=2, is_host_transfer=true, \
frontend_attributes={{{BETWEEN}}}
  %recv = (f32[8,128]{{1,0}}, u32[], token[]) recv(%after-all), channel_id=3, is_host_transfer=true, \
frontend_attributes={{{BETWEEN}}}
  %send-done = token[] send-done(%send), channel_id=2, is_host_transfer=true
  %recv-done = (f32[8,128]{{1,0}}, token[]) recv-done(%recv), channel_id=3, is_host_transfer=true
  ROOT %sum = f32[8,128]{{1,0}} get-tuple-element(%recv-done), index=0
}}
"""


def collectives(devices: tuple[Device, ...]) -> tuple[Collective, ...]:
    mesh = MeshSyntax((("s", 2), ("x", 2)))
    module = parse_module(Source("hlo", ONE_SLICE.encode()))
    return hlo_collectives("hlo", module, AnalysisContext((mesh,), 4, devices=devices))


def test_what_one_slice_does_all_of_them_do() -> None:
    inside, between = collectives(DEVICES)
    assert (inside.kind, inside.axes, inside.groups) == ("all-gather", (AxisRef("x"),), ((0, 1), (2, 3)))
    assert (between.kind, between.axes, between.groups) == ("all-reduce", (AxisRef("s"),), ((0, 2), (1, 3)))
    assert (between.reduction, between.origin, between.is_async) == ("sum", "user", True)
    assert between.operand_types == between.result_types == (ArrayType("f32", (8, 128)),)
    assert between.wire_bytes == 2 * 8 * 128 * 4 // 2


def test_a_text_without_devices_still_tells_what_is_sent() -> None:
    _, between = collectives(())
    assert (between.kind, between.groups, between.axes) == ("all-reduce", (), None)


@pytest.mark.parametrize(
    ("target", "groups", "pairs"),
    [
        ("{1,2}x{0:1}", ((100_000, 200_000), (100_001, 200_001)), ()),
        ("{1,3}x{0,4:5}", ((100_000, 300_000), (100_004, 300_004), (100_005, 300_005)), ()),
        ("{{100000,300000},{200000,400000}}", ((100_000, 300_000), (200_000, 400_000)), ()),
        ("{{100000->200000},{200000->100000}}", (), ((100_000, 200_000), (200_000, 100_000))),
        ("{1,2}x{0:99999999999}", (), ()),
        ("{1,2}x{0:900000,0:900000}", (), ()),
        ("something else", (), ()),
    ],
)
def test_targets(target: str, groups: tuple[tuple[int, ...], ...], pairs: tuple[tuple[int, ...], ...]) -> None:
    marks = {"_xla_megascale_transfer_type": "ALL_GATHER", "_xla_megascale_target": target}
    assert transfer_of(marks) == Transfer("all-gather", groups, pairs)


def test_other_transfers_are_none() -> None:
    assert transfer_of({"_xla_host_transfer_handler_name": "tf_rendezvous"}) is None


PROGRAM = """
import jax, numpy as np
from jax import lax, P
from jax.sharding import AxisType, Mesh, NamedSharding

# The slices are the inner axis, so that partitions of one slice are not one behind the other.
devices = np.array(sorted(jax.devices(), key=lambda device: device.id)).reshape(2, -1).T
mesh = Mesh(devices, ("x", "s"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P(("x", "s")), out_specs=P(("x", "s")), check_vma=False)
def fn(v):
    around = lax.ppermute(v, "s", [(0, 1), (1, 0)])
    exchanged = lax.all_to_all(v + 1, "s", 0, 0, tiled=True)
    return lax.pmax(v, "s"), lax.psum(v * v, "x"), lax.all_gather(v, "s", tiled=True), around, exchanged

fn_inputs = (jax.ShapeDtypeStruct((8 * 64, 256), "float32", sharding=NamedSharding(mesh, P(("x", "s")))),)
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_compiled_for_two_slices(tmp_path: Path) -> None:
    """The compiled program of one slice communicates as the partitioned one of both does."""
    (tmp_path / "program.py").write_text(PROGRAM)
    capture = last_capture(Request(f"{tmp_path}/program.py:fn", target="tpu:v5p:2x2x1*2", live=False))
    assert capture.complete, capture.failure

    program = Program(capture)

    def told(stage: str) -> list[tuple[object, ...]]:
        found = program.stage(stage)
        assert found is not None
        return sorted(
            (c.kind, str(c.axes), sorted(map(sorted, c.groups)), sorted(c.pairs), c.bytes_in, c.bytes_out, c.reduction)
            for c in collectives_of(program, found)
        )

    assert told("hlo") == told("hlo-spmd")
    links = {c.axes: c.estimate.link for c in inspect(program).collectives if c.stage == "hlo" and c.estimate}
    assert links == {(AxisRef("s"),): "network", (AxisRef("x"),): "torus axes"}
