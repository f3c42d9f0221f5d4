"""What is alive at the peak: against the types in the program, and against what the compiler accounts for."""

from __future__ import annotations

import importlib.util
import math
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import jax
import numpy as np
import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.capture.model import Capture, Memory, Stage
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.cost.host_transfers import host_transfers, is_on_host
from shardscope.inspector.cost.memory_curve import alive_bytes
from shardscope.inspector.cost.peak_memory import alive_at_peak, peak_memory, scheduled_instructions
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.targets.chips import chips_of
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

from tests.conftest import SampleCapture

from .complete.kept import kept


@pytest.fixture
def trained(sample: SampleCapture) -> Capture:
    return sample("fsdp_tp:grad")


def test_every_value_has_its_instruction_and_size(trained: Capture) -> None:
    peak = inspect(trained).peak
    assert peak is not None
    if jax.__version_info__ < (0, 10):
        assert trained.peak is None
        pytest.skip("XLA of that time writes no live ranges for the CPU")
    alive = alive_at_peak(Program(trained))
    assert alive
    parts = trained.memory
    assert parts is not None
    assert peak.bytes == (parts.arguments or 0) + (parts.outputs or 0) + (parts.temporaries or 0) - (parts.aliased or 0)
    assert peak.peak is None, "XLA's figure for CPUs leaves temporaries out"
    assert peak.capacity is None
    assert peak.fits is None
    assert [value.bytes for value in alive] == sorted((value.bytes for value in alive), reverse=True)
    arguments = [value for value in alive if value.opcode == "argument"]
    assert {value.op_name for value in arguments} <= {value.path for value in trained.arguments}
    for value in alive:
        assert value.type, value
        type = str(value.type)
        if type.startswith("f32["):
            dims = [int(size) for size in type[4:-1].split(",") if size]
            elements = 1
            for size in dims:
                elements *= size
            assert value.bytes == 4 * elements
    assert any(value.source.frame is not None for value in alive)


def test_accounts_of_all_kinds() -> None:
    assert peak_memory(Program(Capture())) is None
    assert peak_memory(Program(Capture(memory=Memory()))) is None
    held = peak_memory(Program(Capture(memory=Memory(arguments=10, outputs=5, temporaries=7, aliased=5, peak=12))))
    assert held is not None
    assert held.bytes == 17


def test_a_peak_is_between_what_is_there_all_along_and_all_that_is_there() -> None:
    """Arguments that no result takes the place of stay, and temporaries are there; what is aliased counts once."""
    for arguments, outputs, temporaries, aliased, peak in product(range(3), range(2), range(3), range(3), range(8)):
        memory = Memory(arguments, outputs, temporaries, aliased, peak=peak)
        found = peak_memory(Program(Capture(memory=memory)))
        stays, every = max(arguments - aliased, 0) + temporaries, arguments + outputs + temporaries - aliased
        if found is None:
            assert every == peak == 0
        elif every > 0:
            assert (found.bytes, found.peak) == (every, peak if stays <= peak <= every else None)


@pytest.mark.parametrize("cores", [1, 2])
def test_cores_share_the_memory_of_their_chip(cores: int) -> None:
    whole = kept("cube")
    assert whole.subject is not None
    devices = tuple(replace(each, core=number % cores) for number, each in enumerate(whole.subject.devices))
    peak = peak_memory(Program(replace(whole, subject=replace(whole.subject, devices=devices))))
    assert peak is not None
    assert peak.capacity == int(chips_of("tpu")["v5p"].figure("hbm_bytes")) // cores


def test_a_broken_list_is_no_error(trained: Capture) -> None:
    broken = Source(
        "peak", b"Live ranges at 5\n    a{0: 12\n    %{}: x bytes\n    \xff{}: 8 bytes (cumulative: 8 bytes)\n"
    )
    (found,) = alive_at_peak(Program(replace(trained, peak=broken)))
    assert found.bytes == 8
    assert found.source.frame is None


OFFLOADED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
device = NamedSharding(mesh, P("x", "y"))
host = device.with_memory_kind("pinned_host")
def update(moments, gradient):
    moments = 0.9 * jax.device_put(moments, device) + gradient
    return jax.device_put(moments, host), moments.sum()
fn = jax.jit(update, out_shardings=(host, None))
inputs = tuple(jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=where) for where in (host, device))
"""


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_what_is_on_the_host_is_copied_there_and_back(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(OFFLOADED)
    *_, found = capture(Request(f"{script}:fn", target="tpu:v5p:2x2x1", live=False))
    assert found.failure is None, found.failure
    peak, parts = inspect(found).peak, found.memory
    assert peak is not None
    assert parts is not None
    part = 1024 * 1024 * 4 // 4
    assert sorted((each.direction, each.bytes, each.executions) for each in peak.transfers) == [
        ("from host", part, 1),
        ("to host", part, 1),
    ]
    # The compiler's own account has the argument and the output there, and the gradient on the device.
    assert peak.host == 2 * part
    assert parts.arguments == part
    assert peak.bytes == part + (parts.outputs or 0) + (parts.temporaries or 0) + (parts.code or 0)
    alive = alive_at_peak(Program(found))
    assert {value.on_host for value in alive if value.op_name == "moments"} == {True}
    assert {value.on_host for value in alive if value.op_name == "gradient"} == {False}


UPDATED = "((bf16[8,64]{1,0:S(5)}, bf16[1,64]{1,0}, s32[], s32[]), bf16[8,64]{1,0:S(5)}, u32[])"
HIDDEN = f"""
HloModule offloaded, is_scheduled=true

ENTRY %main (kept: bf16[8,64], part: bf16[1,64], at: s32[]) -> bf16[8,64] {{
  %kept = bf16[8,64]{{1,0:S(5)}} parameter(0)
  %part = bf16[1,64]{{1,0}} parameter(1)
  %at = s32[] parameter(2)
  %dynamic-update-slice-start = {UPDATED} dynamic-update-slice-start(%kept, %part, %at, %at)
  ROOT %dynamic-update-slice-done = bf16[8,64]{{1,0:S(5)}} dynamic-update-slice-done(%dynamic-update-slice-start)
}}
"""

RANGES = b"""HloLiveRange (max 7):
  InstructionSequence:
    0:kept
    1:part
    2:at
    3:dynamic-update-slice.14
    4:dynamic-update-slice-start
    5:dynamic-update-slice-done
"""


def test_what_an_asynchronous_update_writes_is_where_its_end_has_it() -> None:
    """In front of the start XLA schedules what it begins, by a name that the text does not have."""
    module = parse_module(Source("m.hlo", HIDDEN.lstrip().encode()))
    made_by = scheduled_instructions(module, RANGES)["dynamic-update-slice.14"]
    assert (made_by.name, is_on_host(made_by.type)) == ("dynamic-update-slice-done", True)


PLAIN = """
HloModule offloaded, is_scheduled=true

ENTRY %main (kept: bf16[8,64], part: bf16[1,64], at: s32[]) -> bf16[8,64] {
  %kept = bf16[8,64]{1,0:KEPT} parameter(0)
  %part = bf16[1,64]{1,0:PART} parameter(1)
  %at = s32[] parameter(2)
  ROOT %updated = bf16[8,64]{1,0:KEPT} dynamic-update-slice(%kept, %part, %at, %at)
}
"""

SLICE = """
HloModule offloaded, is_scheduled=true

ENTRY %main (kept: bf16[8,64], at: s32[]) -> bf16[1,64] {
  %kept = bf16[8,64]{1,0:KEPT} parameter(0)
  %at = s32[] parameter(1)
  ROOT %part = bf16[1,64]{1,0:PART} dynamic-slice(%kept, %at, %at), dynamic_slice_sizes={1,64}
}
"""


@pytest.mark.parametrize(
    ("text", "direction"),
    [
        (HIDDEN, "to host"),
        (PLAIN.replace("KEPT", "S(5)").replace(":PART", ""), "to host"),
        (PLAIN.replace(":KEPT", "").replace("PART", "S(5)"), "from host"),
        (PLAIN.replace("KEPT", "S(5)").replace("PART", "S(5)"), None),
        (PLAIN.replace(":KEPT", "").replace(":PART", ""), None),
        (SLICE.replace("KEPT", "S(5)").replace(":PART", ""), "from host"),
        (SLICE.replace(":KEPT", "").replace("PART", "S(5)"), "to host"),
    ],
)
def test_the_slice_alone_is_moved(text: str, direction: str | None) -> None:
    """It is as large as numpy's array of its type; the whole and the indices are where they were."""
    stage = ParsedStage(Stage("hlo", "hlo", Source("m.hlo", text.lstrip().encode())))
    moved = [] if direction is None else [(direction, np.empty((1, 64), "u2").nbytes, 1)]
    assert [(each.direction, each.bytes, each.executions) for each in host_transfers(stage)] == moved


def test_what_the_optimizer_makes_is_of_no_pass(sample: SampleCapture) -> None:
    """JAX names transformations in the names of both passes, and in no others."""
    alive = alive_at_peak(Program(sample("transformer:train_step")))
    named = [value for value in alive if value.op_name.startswith("jit(") and value.opcode != "argument"]
    others = {value.direction for value in named if "jvp(" not in value.op_name}
    assert others <= {"unknown"}
    assert {value.direction for value in named if "jvp(" in value.op_name} <= {"forward", "backward", "recompute"}
    assert len(named) > 3 or jax.__version_info__ < (0, 8)  # whose XLA names fewer of them


WIDTHS = {"pred": 1, "bf16": 2, "f32": 4, "s32": 4, "u32": 4}


@pytest.mark.parametrize("name", ["manual", "exchange", "rounds"])
def test_what_is_alive_at_each_instruction(name: str) -> None:
    """Counted for each: a value lives from the first instruction of its range to the last, both included."""
    report = inspect(load(Path(__file__).parents[1] / "command" / "approved" / f"{name}.capture"))
    stage, peak = report.program.stage("hlo"), report.capture.peak
    assert stage is not None
    assert peak is not None
    text, ranges = stage.source.data.decode(), peak.data.decode()
    types = dict(re.findall(r"^\s+(?:ROOT )?%?(\S+) = (\(.*?\)|\S+) [\w-]+\(", text, re.MULTILINE))
    count = len(re.findall(r"^ +\d+:\S+$", ranges, re.MULTILINE))
    expected = [0] * count
    for value, element, first, last in re.findall(r"^ +(\S+?)\{(\d*)\}:(\d+)-(\d+)$", ranges, re.MULTILINE):
        arrays = re.findall(r"(\w+)\[([\d,]*)\]", types[value])
        is_tuple = types[value].startswith("(")
        sizes = [WIDTHS[kind] * math.prod(map(int, filter(None, dims.split(",")))) for kind, dims in arrays]
        size = sizes[int(element or 0)] if element or not is_tuple else 8 * len(sizes)
        for moment in range(int(first), min(int(last) + 1, count)):
            expected[moment] += size
    assert alive_bytes(stage, peak.data) == tuple(expected)
