"""The numbers of operations: taken out of every text without a trace, and nothing is compiled otherwise for them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.capture import events
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Failure
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.capture.tags import pairs_of, plain, tagged, untagged
from shardscope.inspector.correspondence.numbers import tag_of_location, tags_in
from shardscope.inspector.ir.program import Program
from shardscope.samples.catalogue import samples

from tests.conftest import SampleCapture
from tests.sweeps import sampled


@pytest.mark.parametrize(
    ("text", "expected", "numbers"),
    [
        ('op_name="jit(f)/~op7~/dot" x', 'op_name="jit(f)/dot" x', [7]),
        # A call around, and the operation itself.
        ('"jit(f)/~op1~/jit(g)/~op12~/add"', '"jit(f)/jit(g)/add"', [12]),
        # Joined by XLA: the same names, different ones, and with what they share taken out.
        ('"jit(f)/~op1~/mul;jit(f)/~op2~/mul"', '"jit(f)/mul"', [1, 2]),
        ('"jit(f)/~op1~/mul;~op2~/mul"', '"jit(f)/mul"', [1, 2]),
        ('"jit(f)/~op1~/mul;jit(f)/~op2~/add"', '"jit(f)/mul;jit(f)/add"', [1, 2]),
        ('"jit(f)/(~op1~:~op2~)/mul"', '"jit(f)/mul"', [1, 2]),
        ('"jit(f)/(jvp()/~op1~/mul:transpose(jvp())/~op2~/add)"', '"jit(f)/(jvp()/mul:transpose(jvp())/add)"', [1, 2]),
        ('"f/~op3~/jvp(jit(log_softmax))/~op4~/sum"', '"f/jvp(jit(log_softmax))/sum"', [4]),
        ('loc("~op5~/reduce_max"(#loc3))', 'loc("reduce_max"(#loc3))', [5]),
        # Of a kernel the number is in front of the name that XLA gives its instruction; a call around has its own.
        ('"jit(f)/~op6~/attend/pallas_call"', '"jit(f)/attend/pallas_call"', [6]),
        ('"jit(f)/~op1~/jit(g)/~op6~/attend/pallas_call"', '"jit(f)/jit(g)/attend/pallas_call"', [6]),
        # Only calls around have numbers: one is the nearest there is; of several it could be any.
        ('"jit(f)/~op1~/jit(g)/add"', '"jit(f)/jit(g)/add"', [1]),
        ('"~op1~/jit(f)/~op2~/jit(g)/add"', '"jit(f)/jit(g)/add"', []),
        ('no mark, "and a string"', 'no mark, "and a string"', []),
    ],
)
def test_out_of_a_text(text: str, expected: str, numbers: list[int]) -> None:
    found, tags = untagged(text.encode())
    assert found.decode() == expected
    assert [number for _, number in pairs_of(tags)] == numbers
    assert all(0 <= offset <= len(found) for offset, _ in pairs_of(tags))
    assert untagged(tagged(found, tags)) == (found, tags)


NAMES = st.lists(
    st.sampled_from(["a", "/", "~op1~/", "~op22~/", "~op", ";", ":", "(", ")", "~", '"', "\n"]), max_size=30
)


@given(NAMES)
def test_any_text_comes_back(pieces: list[str]) -> None:
    found, tags = untagged("".join(pieces).encode())
    assert len(tags) % 8 == 0
    again = untagged(tagged(found, tags))
    assert again == untagged(tagged(*again))


def test_messages_are_plain() -> None:
    assert plain("cannot go from … for op_name=jit(f)/~op3~/add") == "cannot go from … for op_name=jit(f)/add"
    refused = 'not valid: %a = f32[4] add(%b, %c), op_name="jit(f)/~op9~/add"'
    failure = events.fold(Capture(), Failure("function", refused, "compile", refused, said=refused)).failure
    assert failure is not None
    assert {failure.message, failure.details, failure.said} == {refused.replace("~op9~/", "")}


SCRIPT = """
import importlib.util, json, os, re, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax
from shardscope.inspector.capture.worker.tagging import tag
_, path, name, folder = sys.argv
spec = importlib.util.spec_from_file_location("program", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
function, inputs = getattr(module, name), getattr(module, f"{name}_inputs")
inputs = inputs() if callable(inputs) else inputs
traced = (function if hasattr(function, "trace") else jax.jit(function)).trace(*inputs)
texts = []
for number in range(2):
    lowered = traced.lower()
    problem = tag(lowered.compiler_ir("stablehlo")) if number else None
    assert problem is None, problem
    # A folder of its own, since JAX gives the same executable for the same options.
    texts.append(lowered.compile(compiler_options={"xla_dump_to": f"{folder}/{number}"}).as_text())
print(json.dumps(texts))
"""


@pytest.mark.parametrize("name", sampled(["transformer:train_step", "moe:grad"], ("moe:grad",), 1))
def test_what_is_compiled_does_not_change(name: str, tmp_path: Path) -> None:
    """The same instructions, but for what is only said about them: their names, and where they come from."""
    sample, _, function = name.partition(":")
    path = next(each.path for each in samples() if each.name == sample)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), function, str(tmp_path)],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    plainly, numbered = json.loads(done.stdout.splitlines()[-1])
    assert "~op" in numbered
    assert shape(plainly) == shape(numbered)


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
def test_kernels_for_tpus_have_the_names_that_xla_gives_them(tmp_path: Path) -> None:
    script, target = tmp_path / "kernels.py", "v5p:2x2x1"
    script.write_text(KERNELS)
    bare = subprocess.run(
        [sys.executable, "-c", BARE.replace("TARGET", target), str(script)],
        env={**os.environ, "JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    *_, found = capture(Request(f"{script}:f", target=f"tpu:{target}", live=False))
    stage = found.stage("hlo")
    assert stage is not None, found.failure
    kernels = re.compile(r"(%\S+) = \S+ custom-call\(")
    expected = kernels.findall(bare.stdout)
    assert len(expected) == 3, bare.stderr[-2000:]
    assert kernels.findall(stage.source.text()) == expected


KERNELS = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))


def kernel(a, o):
    o[...] = a[...] + 1.0


def add(a, **named):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(a.shape, a.dtype), **named)(a)


def body(a):
    with jax.named_scope("attention"):
        a = add(a, name="attend")
    return jax.jit(add)(add(a))


f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
inputs = (jax.ShapeDtypeStruct((32, 128), jnp.float32, sharding=NamedSharding(mesh, P("x"))),)
"""

BARE = """
import sys
import jax, numpy as np
from jax.experimental import topologies
topology = topologies.get_topology_desc("TARGET", platform="tpu")
def make_mesh(sizes, names, axis_types):
    return jax.sharding.Mesh(np.array(topology.devices).reshape(sizes), names, axis_types=axis_types)
jax.make_mesh = make_mesh
script = {}
exec(open(sys.argv[1]).read(), script)
print(script["f"].lower(*script["inputs"]).compile().as_text())
"""


def shape(text: str) -> list[str]:
    """Types, opcodes and attributes of all instructions in their order, without names and metadata."""
    body = text[text.index("\n%") :] if "\n%" in text else text
    lines = [re.sub(r", metadata=\{[^{}]*\}", "", line) for line in body.splitlines()]
    return [re.sub(r"%[\w.\-]+", "%", line) for line in lines]


def test_numbers_lead_from_the_compiled_program_to_the_stablehlo(sample: SampleCapture) -> None:
    """A dot of one of two layers that share lines and names has the number of the dot of that layer."""
    captured = Program(sample("transformer:train_step"))
    compiled, written = captured.stage("hlo"), captured.stage("stablehlo")
    assert compiled is not None
    assert written is not None
    hlo, mlir = compiled.hlo, written.mlir
    assert hlo is not None
    assert mlir is not None
    dots = {
        tag_of_location(written, operation.statement.location): operation
        for operation in mlir.operations({"stablehlo.dot_general", "stablehlo.transpose"})
    }
    assert None not in dots
    found = hlo.with_opcode({"dot"})
    # XLA makes one of a product and the transposition of its result, and calls it by either.
    nowhere = [dot.text for dot in found if dots.keys().isdisjoint(tags_in(compiled, dot.span))]
    assert nowhere == []
    assert len(found) > 20


def test_a_capture_keeps_its_numbers(sample: SampleCapture) -> None:
    captured = sample("predict:predict")
    again = Capture()
    for event in events.events_of(captured):
        again = events.fold(again, event)
    assert [stage.tags for stage in again.stages] == [stage.tags for stage in captured.stages]
    assert [stage.source.data for stage in again.stages] == [stage.source.data for stage in captured.stages]
    assert all(b"~op" not in stage.source.data for stage in captured.stages)
    assert [stage.name for stage in captured.stages if stage.tags] == [
        stage.name for stage in captured.stages if stage.name != "jaxpr"
    ]
