"""Results of two runs that rounding alone sets apart, and of those that something else does."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from shardscope.inspector.capture.model import Execution, OutputSummary
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.worker.probes.live import Inputs, fingerprint, nudged
from shardscope.inspector.experiments.lab import Lab
from shardscope.inspector.experiments.values import compared
from shardscope.inspector.findings.rules import suspect
from shardscope.inspector.pipeline import suspected
from shardscope.inspector.render.overview import attention
from shardscope.inspector.render.table import plain_text
from shardscope.inspector.report import Edit, Experiment, Fix, Report, SourcePosition, State
from shardscope.inspector.report.policy import EVERYTHING

from tests.findings.trying import verified


def step(dtype: str, parts: int, scale: float, weights: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
    """One step of Adam of attention, whose scores do not depend on the bias of its keys, with a batch in `parts`."""

    def loss(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        q, k, up, bias = (weights[name].astype(dtype) for name in ("q", "k", "up", "bias"))
        x = x.astype(dtype)
        scores = jnp.einsum("bth,bsh->bts", x @ q, x @ k + bias)
        return jnp.mean(((jax.nn.softmax(scores) @ x @ up) ** 2).astype(jnp.float32))

    def update(weight: jax.Array, *gradients: jax.Array) -> jax.Array:
        gradient = scale * sum(gradients) / parts
        return weight - 1e-3 * gradient / (jnp.abs(gradient) + 1e-8)

    gradients = [jax.grad(loss)(weights, part) for part in jnp.split(x, parts)]
    new = jax.tree.map(update, weights, *gradients)
    return new | {f"m_{name}": scale * sum(each[name] for each in gradients) / parts for name in weights}


def execution(outputs: dict[str, jax.Array]) -> Execution:
    named = ((name, f"f32[{','.join(map(str, array.shape))}]", np.asarray(array)) for name, array in outputs.items())
    return Execution(tuple(OutputSummary(name, type, None, **fingerprint(array)) for name, type, array in named))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rounding_is_told_from_another_result(dtype: str) -> None:
    """The gradient of a bias that is zero but for rounding is noise, and Adam makes a whole step of it."""
    random = np.random.default_rng(0)
    shapes = {"q": (32, 32), "k": (32, 32), "up": (32, 64), "bias": (32,)}
    weights = {name: jnp.asarray(0.3 * random.standard_normal(shape, np.float32)) for name, shape in shapes.items()}
    x = jnp.asarray(random.standard_normal((16, 24, 32), np.float32))

    def run(parts: int, scale: float, *arguments: object) -> Execution:
        return execution(jax.jit(partial(step, dtype, parts, scale))(*arguments))

    before, leaves = run(1, 1.0, weights, x), jax.tree.flatten((weights, x))
    inputs = Inputs(leaves[0], leaves[1], [False] * len(leaves[0]), False)
    jaxpr = jax.make_jaxpr(partial(step, dtype, 1, 1.0))(weights, x)
    moved = run(1, 1.0, *jax.tree.unflatten(leaves[1], nudged(inputs, jaxpr).leaves))
    in_parts = run(4, 1.0, weights, x)
    alone = compared(before, in_parts)
    assert alone.values == "differ"
    assert "bias" in " ".join(alone.changes)
    assert compared(before, in_parts, nudged=lambda: moved).values == "close"
    assert compared(before, run(4, 1.3, weights, x), nudged=lambda: moved).values == "differ"
    assert compared(before, run(1, 1.0, weights, x[:8]), nudged=lambda: moved).values == "differ"


def report_of(tmp_path: Path, text: str) -> tuple[Report, Request, Execution]:
    """The report of a script's step, what was requested, and what its run gave."""
    script = tmp_path / "script.py"
    script.write_text(text)
    request = Request(f"{script}:step", probe="none", fingerprints=True)
    report = suspected(last_capture(request))
    assert report.capture.execution is not None
    return report, request, report.capture.execution


SHIFTED = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
def step(a, b):
    a = jax.lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)])
    return 2 * a + b

if __name__ == "__main__":
    one, zero = (jax.device_put(jnp.full((8, 4), each), NamedSharding(mesh, P("x"))) for each in (1.0, 0.0))
    step(one, zero)
"""


@pytest.mark.once
def test_what_is_equal_for_numbers_that_are_all_alike_is_compared_for_others(tmp_path: Path) -> None:
    report, request, run = report_of(tmp_path, SHIFTED)
    assert run.uniform_inputs
    assert report.script is not None
    line = next(number for number, text in enumerate(SHIFTED.splitlines(), 1) if "ppermute" in text)
    edit = Edit(report.script, line, 0, line + 1, 0, "")
    place = SourcePosition.of_line(report.script, line)
    found = suspect("SS23", "shifted", place, "left out", [Fix("leave it out", (edit,))])
    (tried,) = verified(replace(report, findings=(found,)), request, suspected).findings
    assert [fix.state for fix in tried.fixes] == ["values differ"]


TIED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2, 2), ("dp", "fsdp", "mp"), axis_types=(AxisType.Auto,) * 3)
ns = lambda *s: NamedSharding(mesh, P(*s))

def shard(value, *spec):
    return jax.lax.with_sharding_constraint(value, ns(*spec))

@jax.jit
def step(table, tokens, targets):
    x = shard(jnp.take(table, tokens, axis=0), ("dp", "fsdp"), None, None)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True))
    logits = shard(x @ shard(table, "fsdp", "mp").T, ("dp", "fsdp"), None, "mp")
    return -(jax.nn.log_softmax(logits) * jax.nn.one_hot(targets, 8192)).sum(-1).mean()

if __name__ == "__main__":
    table = jax.device_put(jax.random.normal(jax.random.key(0), (8192, 256)) / 16, ns("mp", "fsdp"))
    tokens = jax.random.randint(jax.random.key(1), (8, 65), 0, 8192)
    step(table, *(jax.device_put(each, ns(("dp", "fsdp"))) for each in (tokens[:, :-1], tokens[:, 1:])))
"""


def loss_of_tied() -> float:
    table = np.asarray(jax.random.normal(jax.random.key(0), (8192, 256)), np.float64) / 16
    tokens = np.asarray(jax.random.randint(jax.random.key(1), (8, 65), 0, 8192))
    x = table[tokens[:, :-1]]
    logits = x / np.sqrt((x**2).mean(-1, keepdims=True)) @ table.T
    right = np.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
    return float((np.log(np.exp(logits).sum(-1)) - right).mean())


@pytest.mark.once
def test_a_program_that_the_compiler_gets_wrong_is_not_taken_for_right(tmp_path: Path) -> None:
    """XLA's partitioner moves a table between two axes and one of three, and loses a part of it."""
    report, request, run = report_of(tmp_path, TIED)
    if run.outputs[0].mean == pytest.approx(loss_of_tied(), rel=1e-6):
        pytest.skip("this XLA computes it rightly")
    place = SourcePosition.of_line(str(report.script), 1)
    states: tuple[State, ...] = ("not helping", "values differ")
    fixes = [Fix("as the table is placed", experiment=Experiment(state)) for state in states]
    lab = Lab(report, request, EVERYTHING, 60, lambda what: None)
    said = [
        [text for text in map(plain_text, attention(lab.checked(found))) if "run on one device" in text]
        for found in ([suspect("SS23", "table", place, "costs more", [fix])] for fix in fixes)
    ]
    assert [len(each) for each in said] == [0, 1]
    assert said[1][0].startswith("1 of 1 value differs from a run on one device")
