"""What recording costs: scripts as they are beside the same scripts recorded, in turns, ten steps of each.

    python benchmarks/trace.py [PAIRS]

Columns are processor seconds of the whole process, the fastest of each kind, and the ratio of the recorded script to
the bare one; `steps` is the ratio of the ten steps alone, after the first. `said` is the share that the recorded
process reports of itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.tracing import environment_on_target
from shardscope.inspector.traces.read import read_trace

PAIRS = 5

STEPS = """
import resource, sys
def used():
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
def ten_steps(step):
    step()
    before = used()
    for _ in range(10):
        step()
    print(used() - before)
"""

TRANSFORMER = """
import jax
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
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
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
import jax, jax.numpy as jnp
x = jnp.ones(64)
def step():
    y = x
    for number in range(200):
        y = jnp.sin(y) + number * x
    jax.block_until_ready(y)
ten_steps(step)
"""

BOTH = EAGER.replace(
    "def step():",
    """
@jax.jit
def scaled(x):
    return 2 * x
def step():
    scaled(x)""",
)

SCRIPTS = {
    "transformer, 5 arrays a layer": TRANSFORMER,
    "16 matrices of 1 MiB": LARGE,
    "600 operations without jit": EAGER,
    "600 operations without jit, one with": BOTH,
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
    print("| script | bare, s | recorded, s | ratio | steps | said |")
    print("|---|---|---|---|---|---|")
    for name, text in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as folder:
            script, shares = Path(folder, "script.py"), []
            script.write_text(STEPS + text)
            bare, recorded = [], []
            plain = environment_on_target(Path(folder, "none"), TraceOptions(target="cpu"), 8)
            plain = {key: value for key, value in plain.items() if key not in ("PYTHONPATH", "SHARDSCOPE_RECORD")}
            for number in range(pairs):
                bare.append(run(script, plain))
                trace = Path(folder, str(number))
                recorded.append(run(script, environment_on_target(trace, TraceOptions(target="cpu"), 8)))
                [process] = read_trace(trace).processes
                shares.append(process.listing / recorded[-1].whole)
            whole, steps = ([min(each[field] for each in kind) for kind in (bare, recorded)] for field in (0, 1))
            print(
                f"| {name} | {whole[0]:.2f} | {whole[1]:.2f} | {whole[1] / whole[0]:.3f} | {steps[1] / steps[0]:.3f} "
                f"| {min(shares):.1%} |",
                flush=True,
            )


main()
