"""What recording costs: scripts as they are beside the same scripts recorded, in turns, ten steps of each.

    python benchmarks/trace.py [PAIRS [WORD]]

Columns are processor seconds of the whole process, and what the recorded one takes more: the median over the pairs, in
percent, with what lies in the middle half of them, for the whole and for the ten steps alone, after two others. `said`
is the share that the recorded process reports of itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.tracing import environment_on_target
from shardscope.inspector.traces.read import read_trace

PAIRS = 9

STEPS = """
import resource, sys
def used():
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
def ten_steps(step):
    step(), step()
    before = used()
    for _ in range(10):
        step()
    print(used() - before)
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
"""

TRANSFORMER = """
from shardscope.samples import transformer as sample
given = sample.train_step_inputs() if callable(sample.train_step_inputs) else sample.train_step_inputs
state, tokens = given
def make(leaf):
    zeros = jax.numpy.zeros(leaf.shape, leaf.dtype)
    return leaf if isinstance(leaf, jax.Array) else jax.device_put(zeros, leaf.sharding)
state, tokens = jax.tree.map(make, (state, tokens))
def step():
    global state
    state, loss = sample.train_step(state, tokens)
    jax.block_until_ready(loss)
ten_steps(step)
"""

LARGE = """
mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
layers = [jax.device_put(np.ones((512, 512), np.float32), NamedSharding(mesh, P("fsdp", "tp"))) for _ in range(16)]
x = jax.device_put(np.ones((256, 512), np.float32), NamedSharding(mesh, P("fsdp")))
def loss(layers, x):
    for w in layers:
        x = jnp.tanh(x @ w)
    return jnp.mean(x)
@jax.jit
def train_step(layers, x):
    value, gradients = jax.value_and_grad(loss)(layers, x)
    return jax.tree.map(lambda w, g: w - 0.1 * g, layers, gradients), value
def step():
    global layers
    layers, value = train_step(layers, x)
    jax.block_until_ready(value)
ten_steps(step)
"""

EAGER = """
x = jnp.ones(64)
def step():
    y = x
    for number in range(200):
        y = jnp.sin(y) + number * x
    jax.block_until_ready(y)
ten_steps(step)
"""

BESIDE = LARGE.replace(
    "    jax.block_until_ready(value)",
    """
    for number in range(50):
        value = jnp.sin(value) + number * value
    jax.block_until_ready(value)""",
)

NNX = """
from flax import nnx
import optax
class Model(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([nnx.Linear(512, 512, rngs=rngs) for _ in range(8)])
    def __call__(self, x):
        for layer in self.layers:
            x = nnx.relu(layer(x))
        return x
model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
x = jnp.ones((256, 512))
@nnx.jit
def train_step(model, optimizer, x):
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)
    optimizer.update(model, gradients)
    return loss
def step():
    jax.block_until_ready(train_step(model, optimizer, x))
ten_steps(step)
"""

SMALL = """
def scaled(number):
    return jax.jit(lambda state: {"x": state["x"] * 2 + number, "y": state["y"]})
functions = [scaled(number) for number in range(10)]
state = {"x": jnp.ones(64), "y": jnp.ones(3)}
def step():
    now = state
    for _ in range(20):
        for function in functions:
            now = function(now)
    jax.block_until_ready(now)
ten_steps(step)
"""

SCRIPTS = {
    "a transformer's step, 5 arrays a layer": TRANSFORMER,
    "a step with 16 matrices of 1 MiB": LARGE,
    "that step, and 150 operations outside of jit beside it": BESIDE,
    "a step of `nnx.jit`, 8 layers": NNX,
    "200 calls of 10 small jitted functions": SMALL,
    "600 operations outside of jit": EAGER,
}


class Used(NamedTuple):
    """Processor seconds of a process, and of its ten steps."""

    whole: float
    steps: float


def run(script: Path, environment: dict[str, str]) -> Used:
    process = subprocess.Popen((sys.executable, str(script)), env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    steps = float(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, script
    return Used(usage.ru_utime + usage.ru_stime, steps)


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    print("| script | bare, s | more | ten steps | more | said |")
    print("|---|---|---|---|---|---|")
    for name, text in SCRIPTS.items():
        if not all(word in name for word in sys.argv[2:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            script, shares = Path(folder, "script.py"), []
            script.write_text(STEPS + text)
            bare, recorded = [], []
            plain = environment_on_target(Path(folder, "none"), TraceOptions(target="cpu"), 8)
            plain = {key: value for key, value in plain.items() if key not in ("PYTHONPATH", "SHARDSCOPE_RECORD")}
            for number in range(pairs + 1):
                bare.append(run(script, plain))
                trace = Path(folder, str(number))
                recorded.append(run(script, environment_on_target(trace, TraceOptions(target="cpu"), 8)))
                [process] = read_trace(trace).processes
                shares.append(process.listing / recorded[-1].whole)
            cells = [name]
            for field in ("whole", "steps"):
                both = [(getattr(one, field), getattr(other, field)) for one, other in zip(bare, recorded, strict=True)]
                cells += [f"{median(one for one, _ in both[1:]):.3g}", percent([b / a - 1 for a, b in both[1:]])]
            print(f"| {' | '.join(cells)} | {median(shares):.1%} |", flush=True)


def percent(more: list[float]) -> str:
    """The median, and what the middle half of them is between."""
    low, middle, high = quantiles(more, n=4)
    return f"{middle:+.1%} ({low:+.1%} to {high:+.1%})"


main()
