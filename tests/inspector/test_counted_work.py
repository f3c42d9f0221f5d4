"""No function of the analysis, nor of the text, is called quadratically often in the number of collectives."""

import sys
from collections import Counter
from io import StringIO
from pathlib import Path
from types import FrameType

import jax
import pytest
import shardscope.inspector
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import to_json
from shardscope.inspector.render.safe_console import SafeConsole
from shardscope.inspector.render.text import print_report

pytestmark = pytest.mark.once

FEW, TIMES = 4, 4
SLACK = 30
"""Calls that a larger program may take more of at once, as where a table is begun."""

SCRIPT = """
import jax, jax.numpy as jnp
from functools import partial
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
ring = [(device, (device + 1) % 8) for device in range(8)]

def collectives(count, x):
    for number in range(count):
        x = jnp.tanh(jax.lax.psum(x, "x") * (number + 1.0))
        x = jax.lax.ppermute(x, "x", ring) + jax.lax.pmax(x, "x")
        x = x + jax.lax.all_gather(x, "x")[number % 8]
    return x

def of(count):
    body = partial(collectives, count)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))

def of_gradients(count):
    def loss(weights, x):
        return sum(jnp.tanh(x @ weight).sum() for weight in weights)
    x = jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=jax.NamedSharding(mesh, P("x")))
    return jax.jit(jax.grad(loss)), ([jax.ShapeDtypeStruct((8, 8), jnp.float32)] * count, x)

inputs = (jax.ShapeDtypeStruct((8, 16), jnp.float32),)
"""


def captured(folder: Path, ends: str) -> Capture:
    path = folder / "script.py"
    path.write_text(f"{SCRIPT}{ends}\n")
    return last_capture(Request(f"{path}:fn", live=False))


def calls_by_function(capture: Capture) -> tuple[Counter[str], int]:
    """How often each function of ours is called from a capture to its text and JSON, and the collectives' number."""
    ours = str(Path(shardscope.inspector.__file__).parents[1])
    found: Counter[str] = Counter()

    def counted(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ours):
            code = frame.f_code
            found[f"{code.co_filename.removeprefix(ours)}:{code.co_firstlineno} {code.co_qualname}"] += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        report = inspect(capture)
        print_report(report, SafeConsole(file=StringIO(), width=160))
        to_json(report)
    finally:
        sys.setprofile(before)
    return found, len(report.collectives)


def test_nothing_is_quadratic_in_collectives(tmp_path: Path) -> None:
    few, many = (captured(tmp_path, f"fn = of({count})") for count in (FEW, FEW * TIMES))
    number, larger = assert_linear(few, many)
    assert larger == TIMES * number >= TIMES * FEW * 4


def test_nothing_is_quadratic_in_lines(tmp_path: Path) -> None:
    """Each collective has a line of its own, and a finding with a fix of its own, about what is summed already."""

    def written(count: int) -> Capture:
        lines = "".join(f'    x = jnp.sin(jax.lax.psum(x, "x") + {number}.0)\n' for number in range(count))
        mapped = 'jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())'
        return captured(tmp_path, f"def body(x):\n{lines}    return x\nfn = jax.jit({mapped})")

    few, many = written(FEW * 2), written(FEW * 2 * TIMES)
    assert sum(bool(fix.edits) for found in inspect(many).findings for fix in found.fixes) >= FEW * 2 * TIMES - 1
    assert_linear(few, many)


def test_nothing_is_quadratic_in_gradients_of_one_sum(tmp_path: Path) -> None:
    few, many = (
        captured(tmp_path, f"fn, fn_inputs = of_gradients({count})") for count in (FEW * TIMES, FEW * TIMES * TIMES)
    )
    number, larger = assert_linear(few, many)
    if jax.__version_info__ >= (0, 8):  # whose compiler sums all of them at once
        assert number == larger


def assert_linear(few: Capture, many: Capture) -> tuple[int, int]:
    """The numbers of collectives in a capture, and in one of TIMES as much, whose report takes not much more calls."""
    assert few.complete, few.failure
    calls_by_function(many)  # what is read once and for all, as the forms of operations
    (some, number), (more, larger) = map(calls_by_function, (few, many))
    assert not {name: (some[name], calls) for name, calls in more.items() if calls > 3 * TIMES * some[name] + SLACK}
    return number, larger
