"""Strategies of communication, against what the samples are written to do, and the length of the short report."""

from __future__ import annotations

import importlib.util
import io
from collections import Counter
from pathlib import Path

import jax
import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.text import print_report
from shardscope.inspector.report import Report

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

WRITTEN = {
    "data_parallel:grad": {("gradient sync", "batch")},
    "fsdp:grad": {("weight gathers", "batch"), ("gradient sync", "batch")},
    "fsdp:loss": {("input gathers", "batch"), ("scalar reductions", "batch")},
    "fsdp_tp:grad": {("weight gathers", "batch"), ("gradient sync", "batch"), ("tensor parallelism", "feats")},
    "tensor_parallel:grad": {("tensor parallelism", "feats")},
    "megatron_mlp:grad": {("tensor parallelism", "model"), ("gradient sync", "data")},
    "transformer:train_step": {
        ("weight gathers", "data"),
        ("gradient sync", "data"),
        ("tensor parallelism", "model"),
    },
    "pipeline:grad": {("pipeline", "stage")},
    "ring_attention:grad": {("ring exchange", "ring")},
    "grad_accumulation:once": {("gradient sync", "batch")},
    "moe:loss": {("other", "expert"), ("scalar reductions", "expert")},
}
"""What the docstrings of samples say, by the mesh axis over which they do it."""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 compiles some of them otherwise")
@pytest.mark.parametrize("function", WRITTEN)
def test_samples_do_what_they_are_written_to_do(sample: SampleCapture, function: str) -> None:
    report = inspect(sample(function))
    assert {(each.strategy, *map(str, each.axes or ())) for each in report.communication} == WRITTEN[function]


LIBTPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
TARGETS = ["cpu", pytest.param("tpu:v5p:2x2x1", marks=LIBTPU)]
"""TPUs fuse an addition with the matmul before it; CPUs do not."""

PERMUTES = """
import jax, jax.numpy as jnp
from functools import partial
from jax import P, lax

mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

def send(x):
    return lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)])

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def program(x, k, w):
    def residual_stage(x, _):
        return send(x + jnp.tanh(x @ w)), None

    def two_that_go_around(state, _):
        k, gradient = state
        return (send(k), send(gradient + jnp.tanh(k @ w) @ w)), None

    return lax.scan(residual_stage, x, length=4)[0], lax.scan(two_that_go_around, (k, jnp.zeros_like(k)), length=4)[0]

inputs = (jax.ShapeDtypeStruct((64, 16), jnp.float32),) * 3
"""


def purposes(final: Capture) -> Counter[str]:
    assert final.complete, final.failure
    return Counter({each.strategy: len(each.collectives) for each in inspect(final).communication})


@pytest.mark.parametrize("target", TARGETS)
def test_a_stage_may_add_to_what_it_receives(tmp_path: Path, target: str) -> None:
    """A pipeline multiplies what it received; what a ring adds is a product of other values, sent or not."""
    script = tmp_path / "program.py"
    script.write_text(PERMUTES)
    *_, final = capture(Request(f"{script}:program", target=target, live=False))
    assert purposes(final) == {"pipeline": 1, "ring exchange": 2}


@LIBTPU
def test_gradients_of_a_ring_go_around_on_every_target(sample: SampleCapture) -> None:
    here = sample("ring_attention:grad")
    assert here.subject is not None
    *_, there = capture(Request(f"{here.subject.script}:grad", target="tpu:v5p:2x2x1", live=False))
    assert purposes(there) == purposes(here) == {"ring exchange": 4}


@pytest.mark.parametrize("function", WRITTEN)
def test_totals_are_of_every_collective_once(sample: SampleCapture, function: str) -> None:
    report = inspect(sample(function))
    compiled = [each for each in report.collectives if each.stage == "hlo"]
    assert sum(len(each.collectives) for each in report.communication) == len(compiled)
    sent = sum((each.wire_bytes or 0) * (each.executions or 0) for each in compiled)
    assert sum(each.wire_bytes or 0 for each in report.communication) == sent


@pytest.mark.parametrize("function", ["fsdp:grad", "fsdp_tp:grad", "transformer:train_step"])
def test_weights_are_arguments_that_come_back(sample: SampleCapture, function: str) -> None:
    """Each gathered weight is a parameter, whose gradient or new value has its type."""
    report = inspect(sample(function))
    capture = report.capture
    types = {value.path: value.type for value in capture.arguments}
    gathered = [path for each in report.communication for path in each.arguments]
    assert gathered
    assert all(path.startswith(("params", "state[0]")) for path in gathered)
    assert {types[path] for path in gathered} <= {value.type for value in capture.outputs}


def printed(report: Report) -> list[str]:
    console = Console(file=io.StringIO(), width=160)
    print_report(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


MAX_LINES, MAX_LINES_CLEAN = 60, 25


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_the_short_report_fits_a_page(sample: SampleCapture, function: str) -> None:
    report = inspect(sample(function))
    lines = printed(report)
    is_clean = all(each.severity == "info" for each in report.findings)
    assert len(lines) <= (MAX_LINES_CLEAN if is_clean else MAX_LINES)
    if not report.communication and not report.uncounted:
        assert any(line.startswith("No collectives") for line in lines)
    facts = [line for line in lines if line.strip()]
    assert len(facts) == len(set(facts))
