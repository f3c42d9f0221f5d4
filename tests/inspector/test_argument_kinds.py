"""Arguments by what they are: a tree of data is no tree of parameters."""

from __future__ import annotations

from pathlib import Path

from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.communication.axis_use import argument_kinds
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report

SCRIPT = """
from functools import partial
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
params = jax.device_put({"w": jnp.ones((16, 4)), "b": jnp.ones(4)}, NamedSharding(mesh, P()))
rows = NamedSharding(mesh, P("x"))
batch = jax.device_put({"image": jnp.ones((32, 16)), "label": jnp.ones(32, int)}, rows)
replay = {"now": jnp.ones((8, 16)), "seen": jnp.ones((64, 16)), "actions": jnp.ones(64, int)}
replay = jax.device_put(replay, rows)
layers = jax.device_put({"w": jnp.ones((8, 16, 16)), "b": jnp.ones((8, 16))}, rows)


@jax.jit
def evaluate(params, batch, layers):
    x = jax.lax.scan(lambda x, layer: (jnp.tanh(x @ layer["w"] + layer["b"]), None), batch["image"], layers)[0]
    return ((x @ params["w"] + params["b"]).argmax(-1) == batch["label"]).mean()


def loss(params, replay):
    values = jnp.take_along_axis(replay["seen"] @ params["w"], replay["actions"][:, None] % 4, 1)
    return jnp.mean((values - (replay["now"] @ params["w"] + params["b"]).max()) ** 2)


@jax.jit
def update(params, replay):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, replay)), replay


def neighbors(grid):
    above, below = (jax.lax.ppermute(grid[-1:], "x", [(n, (n + by) % 8) for n in range(8)]) for by in (1, -1))
    return (jnp.concatenate([above, grid[:-1]]) + jnp.concatenate([grid[1:], below])) / 2


smooth = jax.jit(jax.shard_map(neighbors, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
exchange = partial(jax.lax.all_to_all, axis_name="x", split_axis=1, concat_axis=0, tiled=True)
columns = jax.jit(jax.shard_map(exchange, mesh=mesh, in_specs=P("x"), out_specs=P(None, "x")))
double = jax.jit(lambda grid: 2 * grid)

if __name__ == "__main__":
    smooth(batch["image"]), columns(batch["image"]), double(batch["image"])
    evaluate(params, batch, layers)
    params, replay = update(params, replay)
"""


def report_of(script: Path, function: str) -> Report:
    return inspect(last_capture(Request(f"{script}:{function}", devices=8, live=False)))


def kinds_of(script: Path, function: str) -> dict[str, str]:
    report = report_of(script, function)
    arguments = [each for each in report.shardings if each.role == "argument" and each.sharding is not None]
    return {each.name: kind for kind, each, _ in argument_kinds(report.program, arguments)}


def test_batches_and_replay_buffers_are_data(tmp_path: Path) -> None:
    """Stacked layers have one first dimension, too, and what a step returns unchanged is no parameter."""
    script = tmp_path / "kinds.py"
    script.write_text(SCRIPT)
    assert kinds_of(script, "evaluate") == {
        "params['b']": "parameters",
        "params['w']": "parameters",
        "batch['image']": "data",
        "batch['label']": "data",
        "layers['b']": "parameters",
        "layers['w']": "parameters",
    }
    assert kinds_of(script, "update") == {
        "params['b']": "parameters",
        "params['w']": "parameters",
        "replay['actions']": "data",
        "replay['now']": "data",
        "replay['seen']": "data",
    }


def test_rows_that_other_devices_need_are_no_batch(tmp_path: Path) -> None:
    script = tmp_path / "kinds.py"
    script.write_text(SCRIPT)
    shards = [
        [each.what for each in report_of(script, name).axes[0].shards] for name in ("smooth", "columns", "double")
    ]
    assert shards == [["dimension 0 of data"], ["dimension 0 of data"], ["batch"]]
