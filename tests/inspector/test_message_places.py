"""What the compiler and JAX say is told with the user's line."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture, Message
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.program import Program
from shardscope.inspector.selection.message_places import placed_messages

from tests.conftest import SampleCapture

PROGRAM = """\
import warnings
import jax, jax.numpy as jnp
from jax import P
from jax.sharding import AxisType, NamedSharding

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

def summed(a, b, c):
    warnings.warn("a word of the user's")
    scaled = b + 1
    return (a @ scaled).sum(0), c * 2

fn = jax.jit(summed, donate_argnums=(0, 2), out_shardings=NamedSharding(mesh, P()))
fn_inputs = (
    jax.ShapeDtypeStruct((16, 16), "float32", sharding=NamedSharding(mesh, P("x"))),
    jax.ShapeDtypeStruct((16, 16), "float32"),
    jax.ShapeDtypeStruct((8, 2), "bfloat16"),
)
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 7, 2), reason="XLA does not say it")
def test_full_rematerialization(sample: SampleCapture) -> None:
    found = [placed for placed in placed_messages(Program(sample("full_rematerialization:faulty"))) if placed.about]
    assert [(placed.about, placed.source.frame.line) for placed in found if placed.source.frame] == [("x", 21)]


def test_donation_and_warnings(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    *_, last = capture(Request(f"{script}:fn", live=False))
    assert last.complete, last.failure
    said = {placed.message.text.partition(":")[2].strip()[:20]: placed for placed in placed_messages(Program(last))}
    donation = said["Some donated buffers"]
    assert donation.source.frame is not None
    assert (donation.about, donation.source.frame.line) == ("donated: a", 11)
    assert said["a word of the user's"].message.location == f"{script}:9"


def test_what_names_nothing_that_is_there(sample: SampleCapture) -> None:
    texts = (
        'HLO operation %nowhere.1 = f32[2] add(%a, %b), metadata={op_name="jit(f)/nowhere"}',
        'metadata={source_file="/a/model.py" source_line=12}',
        "%" * 50_000 + ' op_name="' + "\\" * 50_000,
    )
    messages = tuple(Message("warning", text, "compile") for text in texts)
    one, two, three = placed_messages(Program(Capture(stages=sample("psum:psum").stages, messages=messages)))
    assert (one.about, one.source.stack) == ("jit(f)/nowhere", ())
    assert two.source.frame is not None
    assert (two.source.frame.file, two.source.frame.line) == ("/a/model.py", 12)
    assert three.source.stack == ()
