"""Strategies of communication, against what the samples are written to do, and the length of the short report."""

from __future__ import annotations

import importlib.util
import io
import re
from ast import literal_eval
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture, Stage, Value
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.collectives.stage import in_one_tree
from shardscope.inspector.communication.weights import like_results
from shardscope.inspector.ir.name_scopes import merged_parts, module_of_name
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.modules import layers_in, module_names, without_layers
from shardscope.inspector.render.tables.communication import communication
from shardscope.inspector.render.text import print_report
from shardscope.inspector.report import BoundaryOrigin, Report
from shardscope.inspector.shardings.collective_causes import causes_of
from shardscope.inspector.shardings.explained import why_axes
from shardscope.parsers.source import Source
from shardscope.samples.catalogue import samples

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
        ("reductions", "model"),
    },
    "pipeline:grad": {("pipeline", "stage")},
    "ring_attention:grad": {("ring exchange", "ring")},
    "matmul_all_gather:overlapped": {("ring exchange", "i")},
    "matmul_all_gather:both_ways": {("ring exchange", "i")},
    "matmul_reduce_scatter:overlapped": {("ring exchange", "y")},
    "grad_accumulation:once": {("gradient sync", "batch")},
    "moe:loss": {("all-to-all exchange", "expert"), ("scalar reductions", "expert")},
}
"""What the docstrings of samples say, by the mesh axis over which they do it."""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 compiles some of them otherwise")
@pytest.mark.parametrize("function", WRITTEN)
def test_samples_do_what_they_are_written_to_do(sample: SampleCapture, function: str) -> None:
    report = inspect(sample(function))
    assert {(each.strategy, *map(str, each.axes or ())) for each in report.communication} == WRITTEN[function]


PERMUTE = "collective-permute"

LIBTPU = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
TARGETS = ["cpu", pytest.param("tpu:v5p:2x2x1", marks=LIBTPU)]
"""TPUs fuse an addition with the matmul before it; CPUs do not."""


@LIBTPU
def test_a_target_does_what_the_sample_is_written_to_do() -> None:
    """The compiler for TPUs gathers biases by a sum: each device writes its part into zeros."""
    (path,) = (each.path for each in samples() if each.name == "fsdp_tp")
    *_, final = capture(Request(f"{path}:grad", target="tpu:v5p:2x2x2", live=False))
    found = inspect(final).communication
    assert {(each.strategy, *map(str, each.axes or ())) for each in found} == WRITTEN["fsdp_tp:grad"]


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

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=(P(), P()))
def collected(x, w):
    def stage(state, _):
        given, kept = state
        made = jnp.tanh(given @ given.T @ given)
        return (send(made), jnp.where(lax.axis_index("x") == 3, made, kept)), None

    _, kept = lax.scan(stage, (x, jnp.zeros_like(x)), length=4)[0]
    every = lax.psum(jnp.where(lax.axis_index("x") == 3, kept, 0), "x")
    block = lax.dynamic_slice_in_dim(every, lax.axis_index("x") * 4, 4, 1)
    return every, lax.psum(block @ w.T, "x")

collected_inputs = (jax.ShapeDtypeStruct((64, 16), jnp.float32), jax.ShapeDtypeStruct((16, 16), jnp.float32))
inputs = (jax.ShapeDtypeStruct((64, 16), jnp.float32),) * 3

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def diffused(u):
    def step(_, u):
        padded = jnp.concatenate([send(u[-2:]), u, send(u[:2])])
        return u + 0.1 * (padded[4:] - padded[:-4])

    return lax.fori_loop(0, 3, step, u)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
def gathered(u):
    def step(n, every):
        sent, received = ((lax.axis_index("x") - n - each) % 4 * 16 for each in (0, 1))
        return lax.dynamic_update_slice_in_dim(every, send(lax.dynamic_slice_in_dim(every, sent, 16)), received, 0)

    every = lax.dynamic_update_slice_in_dim(jnp.zeros((64, 16)), u, lax.axis_index("x") * 16, 0)
    return lax.fori_loop(0, 3, step, every)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def carried(u):
    def step(_, state):
        total, row = state
        return total + row, send(row)

    return lax.fori_loop(0, 3, step, (u, u[0]))[0]

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
def unrolled(u):
    row, total = jnp.split(u, 4)[1], u
    for _ in range(3):
        row = send(row)
        total = total + jnp.sum(row)
    return total

diffused_inputs = gathered_inputs = carried_inputs = unrolled_inputs = inputs[:1]
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


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("name", "expected"),
    [("diffused", {"halo exchange": 2}), ("gathered", {"ring exchange": 1}), ("carried", {"ring exchange": 1})],
)
def test_neighbors_need_the_edges_of_a_block(tmp_path: Path, target: str, name: str, expected: dict[str, int]) -> None:
    """A block that is computed from received edges is not passed on; a part that goes around is no edge."""
    script = tmp_path / "program.py"
    script.write_text(PERMUTES)
    *_, final = capture(Request(f"{script}:{name}", target=target, live=False))
    assert purposes(final) == expected


@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_may_collect_what_stages_computed(tmp_path: Path, target: str) -> None:
    """Beside it, and over the same axis, the sum of a partial product is one of tensor parallelism."""
    script = tmp_path / "program.py"
    script.write_text(PERMUTES)
    *_, final = capture(Request(f"{script}:collected", target=target, live=False))
    assert final.complete, final.failure
    found = {(each.strategy, each.kind): len(each.collectives) for each in inspect(final).communication}
    assert found == {("pipeline", PERMUTE): 1, ("pipeline", "all-reduce"): 1, ("tensor parallelism", "all-reduce"): 1}


NORMED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
put = lambda shape, *spec: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

@jax.jit
def step(ws, bias, x):
    def loss(ws, bias):
        up, down = ws
        h = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)
        h = jax.nn.softmax(h @ up, -1) @ down
        return jnp.square(h + bias).mean()
    value, gradients = jax.value_and_grad(loss, (0, 1))(ws, bias)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, (ws, bias), gradients)

step_inputs = (put((16, 64), None, "model"), put((64, 16), "model")), put((16,)), put((8, 4, 16), "data", None, "model")
"""


def test_what_reductions_leave_is_no_tensor_parallelism(tmp_path: Path) -> None:
    """XLA names each sum after the operation that leaves it; a loss that is summed with gradients is none of them."""
    script = tmp_path / "program.py"
    script.write_text(NORMED)
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    named = {"reductions": "reduce_", "tensor parallelism": "dot_general"}
    for total in report.communication:
        for each in total.collectives if total.strategy in named else ():
            names = {name for part in merged_parts(each.op_name or "") for name in [part.rpartition("/")[2]]}
            assert all(name.startswith(named[total.strategy]) for name in names)
    strategies = {total.strategy: total for total in report.communication}
    assert named.keys() <= strategies.keys()
    synced = strategies["gradient sync"].collectives
    assert len(synced) == 1 or jax.__version_info__ < (0, 8)  # whose XLA does not combine them
    is_loss = [type.elements == 1 for each in synced for type in each.operand_types]
    assert strategies["gradient sync"].gradients == 3 == is_loss.count(False)


TIED_MODEL = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))

def put(shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))

def loss(params, tokens):
    table = params["embed"]
    h = table[tokens[:, :-1]]
    for w in params["layers"]:
        h = h + jnp.tanh(h @ w)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(h @ table.T), tokens[:, 1:, None], -1)
    return -chosen.mean()

def updated(params, gradients):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

@jax.jit
def step(params, tokens):
    value, gradients = jax.value_and_grad(loss)(params, tokens[:, :, 0])
    return value, updated(params, gradients)

@jax.jit
def accumulated(params, tokens):
    parts = [jax.grad(loss)(params, tokens[:, :, batch]) for batch in range(2)]
    return updated(params, jax.tree.map(jnp.add, *parts))

params = {"embed": put((512, 128)), "layers": [put((128, 128))] * 3}
step_inputs = accumulated_inputs = (params, put((32, 65, 2), "data", dtype=jnp.int32))
"""


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5p:2x2x2", marks=LIBTPU)])
@pytest.mark.parametrize("function", ["step", "accumulated"])
def test_sums_that_are_added_are_of_one_gradient(tmp_path: Path, function: str, target: str) -> None:
    """There are as many gradients as parameters, in however many parts they are summed; the loss is none of them."""
    script = tmp_path / "program.py"
    script.write_text(TIED_MODEL)
    *_, final = capture(Request(f"{script}:{function}", live=False, target=target))
    report = inspect(final)
    parameters = [each for each in final.arguments if each.path.startswith("params")]
    synced = [each for each in report.communication if each.strategy == "gradient sync"]
    assert sum(each.gradients for each in synced) == len(parameters) == 4
    sums = [type for total in synced for each in total.collectives for type in each.operand_types if type.elements != 1]
    assert len(sums) > 4
    where = [str(row.cells[-1]) for row in communication(report).rows if "gradient sync" in map(str, row.cells)]
    assert where == ["4 gradients: embed, layers[*]"]


AVERAGED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("d", "m"), axis_types=(AxisType.Auto,) * 2)
over = lambda *specs: jax.shard_map(mesh=mesh, in_specs=specs, out_specs=P())
x, y, w, ws = (jnp.ones(shape) for shape in ((64, 32), (64, 8), (32, 8), (4, 32, 8)))

@jax.jit
@over(P("d"), P())
def models(ws, x):
    return jax.lax.pmean(x @ ws[0], "d")

@jax.jit
@over(P("d"), P("d"), P())
def own_gradient(x, y, w):
    return w - 0.1 * jax.lax.pmean(x.T @ (x @ w - y), "d")

@jax.jit
@over(P(None, "d"), P("d"))
def parts(x, w):
    product = jax.lax.psum(x @ w, "d")
    return product / 4 + product

@jax.jit
@over(P("d"), P("d"), P())
def gradient(x, y, w):
    loss = lambda w: jnp.mean((x @ w - y) ** 2)
    return w - 0.1 * jax.lax.pmean(jax.grad(loss)(jax.lax.pcast(w, "d", to="varying")), "d")

models_inputs, own_gradient_inputs, parts_inputs, gradient_inputs = (ws, x), (x, y, w), (x, w), (x, y, w)
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 9), reason="jax.lax.pcast is newer")
@pytest.mark.parametrize(
    ("function", "strategy"),
    [
        ("models", "averages"),
        ("own_gradient", "averages"),
        ("parts", "tensor parallelism"),
        ("gradient", "gradient sync"),
    ],
)
def test_means_over_devices_are_no_tensor_parallelism(tmp_path: Path, function: str, strategy: str) -> None:
    """A mean has values like those that it is of; of partial products only the sum has any meaning."""
    script = tmp_path / "program.py"
    script.write_text(AVERAGED)
    *_, final = capture(Request(f"{script}:{function}", live=False))
    assert {total.strategy for total in inspect(final).communication} == {strategy}


ATTENTION = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("model",), axis_types=(AxisType.Auto,))
put = lambda shape, *spec: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def loss(weights, x):
    query, key, value = (x @ weight for weight in weights)
    scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", query, key), -1)
    return jnp.tanh(jnp.einsum("bqk,bkd->bqd", scores, value)).sum()

step, step_inputs = jax.jit(jax.grad(loss)), ((put((16, 16)),) * 3, put((4, 64, 16), None, "model"))
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 does not combine these sums")
def test_gradients_are_counted_wherever_the_compiler_sums_them(tmp_path: Path) -> None:
    """It sums two of them together with products of the backward pass."""
    script = tmp_path / "program.py"
    script.write_text(ATTENTION)
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    weights = {
        total.strategy: sum(str(type) == "f32[16,16]" for each in total.collectives for type in each.operand_types)
        for total in report.communication
    }
    assert weights["tensor parallelism"] == 2
    assert {total.strategy: total.gradients for total in report.communication} == weights
    assert sum(weights.values()) == 3
    assert any(", with 2 gradients" in str(cell) for row in communication(report).rows for cell in row.cells)


TIED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
put = lambda shape, *spec, type="f4": jax.ShapeDtypeStruct(shape, type, sharding=NamedSharding(mesh, P(*spec)))
manual = {"in_specs": (P("data"), P(None, None, "model"), P("data")), "out_specs": P("data"), "check_vma": False}

@jax.shard_map(mesh=mesh, **manual)
def experts(h, w, chosen):
    every = jnp.einsum("mk,bkn->bmn", h, w)
    return jax.lax.psum(jnp.tanh(jnp.einsum("mb,bmn->mn", chosen, every) @ w[0].T), "model")

@jax.jit
def step(embedding, w, tokens, chosen):
    def loss(embedding):
        h = experts(jnp.tile(embedding[tokens][:, None], (1, 2, 1)).reshape(-1, 32), w, chosen)
        return jnp.square(jnp.tanh(h) @ embedding.T).mean()
    return embedding - 0.1 * jax.grad(loss)(embedding)

embedding, w = put((64, 32), None, "model"), put((4, 32, 64), None, None, "model")
step_inputs = embedding, w, put((128,), "data", type="i4"), put((256, 4), "data")
"""


@pytest.mark.parametrize("target", TARGETS)
def test_lookups_and_products_that_a_target_writes_otherwise(tmp_path: Path, target: str) -> None:
    """Both uses of the embedding are parts of its gradient, each a sum over `data`, which XLA may combine.

    TPUs add one to the scatter of the other; of a small product they make a sum. The gathers are those of the tile's
    operand, in both passes, as the shard_map wants them.
    """
    script = tmp_path / "program.py"
    script.write_text(TIED)
    *_, final = capture(Request(f"{script}:step", target=target, live=False))
    report = inspect(final)
    found = {(each.strategy, *map(str, each.axes or ())) for each in report.communication}
    assert found == {("gradient sync", "data"), ("tensor parallelism", "model"), ("resharding", "model")}
    (synced,) = (each for each in report.communication if each.strategy == "gradient sync")
    assert synced.gradients == 1
    assert sum(type.elements != 1 for each in synced.collectives for type in each.operand_types) == 2
    gathers = [each for each in report.collectives if (each.stage, each.kind) == ("hlo", "all-gather")]
    effects = {cause.effect for each in gathers for cause in causes_of(report.program, each)}
    if jax.__version_info__ < (0, 11):  # later ones give each operation of a tile a number of its own
        assert effects == {"reshard"}


TRADES = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
constrain = lambda x, *spec: jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

@jax.jit
def program(x, w):
    for _ in range(3):
        x = constrain(constrain(jnp.tanh(constrain(x, "a", None) @ w), "a", "b"), "b", "a")
    return x

inputs = (jax.ShapeDtypeStruct((8, 8), jnp.float32),) * 2
"""


def test_axes_that_trade_places_are_no_pipeline(tmp_path: Path) -> None:
    """What is sent was multiplied after it was received, but devices 0 and 3 keep what they have, as XLA says."""
    script = tmp_path / "program.py"
    script.write_text(TRADES)
    *_, final = capture(Request(f"{script}:program", live=False))
    report = inspect(final)
    permutes = [each for total in report.communication for each in total.collectives if total.kind == PERMUTE]
    assert {(0, 0), (3, 3)} <= set(permutes[0].pairs)
    assert {each.strategy for each in report.communication if each.kind == PERMUTE} == {"resharding"}
    partitioned = replace(final, stages=tuple(each for each in final.stages if each.name == "hlo"))
    assert {each.strategy for each in inspect(partitioned).communication if each.kind == PERMUTE} == {"resharding"}


ROLLED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("stage",), axis_types=(AxisType.Auto,))
on = NamedSharding(mesh, P("stage"))
constrain = jax.lax.with_sharding_constraint

@jax.jit
def rolled(ws, x):
    def tick(state, inputs):
        state = jnp.roll(state, 1, axis=0).at[0].set(inputs)
        state = constrain(jax.vmap(lambda w, h: jnp.tanh(h @ w))(ws, state), on)
        return state, state[-1]
    return jax.lax.scan(tick, constrain(jnp.zeros((4, 2, 8)), on), x)[1]

@jax.jit
def halved(x, w):
    def layer(h, w):
        a, b, c = jnp.split(constrain(h @ w, NamedSharding(mesh, P(None, "stage"))), [12, 24], axis=1)
        return a + b * c[:, :12], None
    return jax.lax.scan(layer, x, w)[0]

rolled_inputs = jax.device_put(jnp.ones((4, 8, 8)), on), jnp.ones((6, 2, 8))
halved_inputs = jnp.ones((8, 12)), jnp.ones((3, 12, 40))
"""


@pytest.mark.parametrize(("function", "shifts"), [("rolled", 1), ("halved", 0)])
def test_the_partitioner_makes_a_pipeline_of_a_roll_alone(tmp_path: Path, function: str, shifts: int) -> None:
    """A split that does not end where shards do exchanges edges, of what a loop multiplied as well."""
    script = tmp_path / "program.py"
    script.write_text(ROLLED)
    *_, final = capture(Request(f"{script}:{function}", live=False))
    found = inspect(final).communication
    assert sum(len(each.collectives) for each in found if each.strategy == "pipeline") == shifts
    assert {each.strategy for each in found if each.kind == PERMUTE} <= {"pipeline", "resharding"}


SCANNED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
stored = NamedSharding(mesh, P(None, None, "data"))

@jax.jit
def step(params, x):
    def loss(params):
        @jax.checkpoint
        def layer(h, w):
            return h + jax.nn.gelu(h @ w["up"].T) @ w["down"].T, None
        return jnp.mean(jnp.square(jax.lax.scan(layer, x, params)[0]))
    grads = jax.lax.with_sharding_constraint(jax.grad(loss)(params), stored)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

def step_inputs():
    params = {"up": jnp.ones((3, 64, 16)), "down": jnp.ones((3, 16, 64))}
    return jax.device_put(params, stored), jax.device_put(jnp.ones((8, 8, 16)), NamedSharding(mesh, P("data")))
"""


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Report:
    script = tmp_path_factory.mktemp("scanned") / "program.py"
    script.write_text(SCANNED)
    *_, final = capture(Request(f"{script}:step", live=False))
    assert final.complete, final.failure
    return inspect(final)


def test_weights_are_gathered_again_in_the_backward_pass_of_a_scan(scanned: Report) -> None:
    """The slice of a layer is fused with the computation of its index, which counts down."""
    assert {(each.strategy, each.kind) for each in scanned.communication} == {
        ("weight gathers", "all-gather"),
        ("gradient sync", "all-reduce"),
    }


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 does not combine these sums")
def test_gradients_that_a_loop_stacks_are_needed(scanned: Report) -> None:
    (summed,) = (each for each in scanned.collectives if (each.stage, each.kind) == ("hlo", "all-reduce"))
    causes = causes_of(scanned.program, summed)
    assert [cause.needed for cause in causes] == [True, True]


def test_causes_name_the_dimension_that_the_argument_is_sharded_in(scanned: Report) -> None:
    """A slice of a layer has one dimension less than the argument; `actual` is what the compiled program says."""
    specs = {each.path: literal_eval(f"{str(each.actual)[1:-1]},)") for each in scanned.capture.arguments}
    found = [
        why.origin
        for each in scanned.collectives
        if each.stage == "hlo"
        for cause in causes_of(scanned.program, each)
        for why in why_axes(scanned.program, (*cause.origins, *cause.against))
    ]
    named = [(each.name, each.dim) for each in found if isinstance(each, BoundaryOrigin) and each.role == "argument"]
    assert {name for name, _ in named} == set(specs)
    assert {name: specs[name][dim] for name, dim in named if dim is not None} == dict.fromkeys(specs, "data")


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 does not combine these sums")
def test_loops_that_are_executed_differently_often_are_added_up(scanned: Report) -> None:
    table = communication(scanned)
    assert {str(row.cells[3]) for row in table.rows} == {"4 all-gathers × 3", "1 all-reduce × 3"}
    first = scanned.communication[0]
    mixed = replace(first, collectives=(replace(first.collectives[0], executions=8), *first.collectives[1:]))
    table = communication(replace(scanned, communication=(mixed,)))
    assert str(table.rows[0].cells[3]) == "4 all-gathers, 17 executions"


def test_numbered_modules_of_one_name_are_one() -> None:
    paths = [("model", f"block_{n}", each) for n in (0, 1, 10) for each in ("attn_0", "Dense_0", "Dense_1")]
    paths += [("model", f"block_{n}", "attn_0", "query") for n in (0, 1, 10)]
    heads = [("model", "head_0", "kernel"), ("model", "head_1", "kernel")]
    layers = layers_in(paths + heads)
    names = ["model.block_*.{attn_0,Dense_0,Dense_1}", "model.block_*.attn_0.query"]
    assert module_names(without_layers(paths, layers)) == names
    assert module_names(without_layers(heads, layers)) == ["model.head_0.kernel", "model.head_1.kernel"]
    assert module_names([("loss",), ("model", "head"), ("norm",)]) == ["loss", "model.head", "norm"]
    deep = ("model", *(f"wrapper_of_layer_{name}" for name in "abc"), "mlp", "kernel")
    assert module_names([deep]) == ["model.….mlp.kernel"]


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


def test_weights_in_the_tuple_of_a_wrapper(sample: SampleCapture) -> None:
    """`eqx.filter_jit` and Haliax's hand on one tuple, whose elements are not those of the result: names of modules."""
    final = sample("fsdp:grad")

    def renamed(values: tuple[Value, ...], root: str) -> tuple[Value, ...]:
        return tuple(replace(each, path=f"{root}.layer{re.sub(r'^[^[]*', '', each.path)}") for each in values)

    arguments = renamed(final.arguments, "dynamic[1][0][0]")
    inputs = [each for each in arguments if "params" not in final.arguments[arguments.index(each)].path]
    arguments = tuple(replace(each, path="dynamic[2].x") if each in inputs else each for each in arguments)
    wrapped = replace(final, arguments=arguments, outputs=renamed(final.outputs, "result[0]"))
    names = {old.path.encode(): new.path.encode() for old, new in zip(final.arguments, arguments, strict=True)}
    stages = []
    for stage in final.stages:
        data = stage.source.data
        for old, new in names.items():
            data = data.replace(
                b'op_name="%s"' % old.replace(b"'", b"\\'"), b'op_name="%s"' % new.replace(b"'", b"\\'")
            )
        stages.append(replace(stage, source=Source(stage.source.name, data)))
    report = inspect(replace(wrapped, stages=tuple(stages)))
    assert {each.strategy for each in report.communication} == {each.strategy for each in inspect(final).communication}
    assert "weight gathers" in {each.strategy for each in report.communication}


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


@pytest.mark.parametrize(
    ("arguments", "outputs", "weights"),
    [
        (["params['w']: f32[8]", "x: f32[8]"], ["result['w']: f32[8]"], ["params['w']"]),
        (["params['w']: f32[8]"], ["result['w']: f32[4]"], []),
        (["params['w']: f32[8]"], ["result['v']: f32[8]"], []),
        (["w: f32[8]", "x: f32[4]"], ["result: f32[8]"], ["w"]),
        (["w: f32[8]", "x: f32[8]"], ["result: f32[8]"], []),
        (["state[0]['w']: f32[8]", "state[1]['w']: f32[8]"], ["result[0]['w']: f32[8]"], ["state[0]['w']"]),
        (["w: f32[8]"], [], []),
        (["state['w']: Ref{f32[8]}", "x: f32[8]"], ["result: f32[]"], ["state['w']"]),
        (["x[0].w: f32[8]"], ["result.w: f32[8]"], ["x[0].w"]),  # in the tuple of a wrapper
        (["x[1][0].w: f32[8]"], ["result[0].w: f32[8]"], ["x[1][0].w"]),
        (["x[0].layers[1].w: f32[8]"], ["result.layers[1].w: f32[8]"], ["x[0].layers[1].w"]),
        (["x[1][0].w: f32[8]"], ["result[0].w: f32[4]"], []),
        (["x[0].w: f32[8]", "x[1].w: f32[8]"], ["result.w: f32[8]"], ["x[0].w", "x[1].w"]),
        (["p.w: f32[8]", "x: f32[8]"], ["result['w']: f32[8]"], ["p.w"]),
        (["state.params['w']: f32[8]", "x: f32[8]"], ["result['w']: f32[8]"], ["state.params['w']"]),
        (
            ["p['a']: f32[8]", "p['b']: f32[4]", "x: f32[8]"],
            ["result[0]: f32[8]", "result[1]: f32[4]"],
            ["p['a']", "p['b']"],
        ),
        (["p['a']: f32[8]", "p['b']: f32[4]"], ["result[0]: f32[4]", "result[1]: f32[8]"], []),
    ],
)
def test_weights_come_back_with_their_path_and_type(
    arguments: list[str], outputs: list[str], weights: list[str]
) -> None:
    given, taken = ([Value(*text.split(": ")) for text in texts] for texts in (arguments, outputs))
    assert like_results(given, taken) == set(weights)


LINEN = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("fsdp", "tp"), axis_types=(AxisType.Auto,) * 2)

def put(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def apply(variables, x):
    params = variables["params"]
    with jax.named_scope("Model"):
        with jax.named_scope("norm"):
            h = x * params["norm"]["scale"]
        for name in ("first", "second"):
            h = jax.lax.with_sharding_constraint(h @ params[name], NamedSharding(mesh, P("fsdp")))
        return h

@jax.jit
def step(state, x):
    gradients = jax.grad(lambda params: jnp.square(apply(params, x)).mean())(state["params"])
    return {"params": jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], gradients)}

weights = {"norm": {"scale": put((64,), "fsdp")}, "first": put((64, 64), "fsdp"), "second": put((64, 64), "fsdp", "tp")}
step_inputs = ({"params": {"params": weights}}, put((16, 64), "fsdp"))
"""


def test_modules_are_in_one_tree(tmp_path: Path) -> None:
    """Gathers are named by the paths of parameters, sums by scopes: the parameters are those of the scopes."""
    script = tmp_path / "program.py"
    script.write_text(LINEN)
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    listed = [each for each in report.collectives if each.stage == "hlo"]
    # As XLA of JAX 0.11 names them: after the arguments, by themselves, that they move.
    gathers = [each for each in listed if each.kind == "all-gather" and each.argument]
    moved = [replace(each, module=module_of_name(each.argument or "")) for each in gathers]
    for found in (listed, in_one_tree([*moved, *listed], [value.path for value in final.arguments])):
        modules = {module for one in found for module in [one.module, *(part.module for part in one.parts)] if module}
        assert {module[0] for module in modules} == {"Model"}
    assert {("Model", "norm"), ("Model", "first"), ("Model", "second")} <= modules


CHOSEN = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
put = lambda shape, *spec: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

@jax.jit
def decode(up, down, head, x):
    h = jnp.tanh(x @ up) @ down
    return jnp.argmax(h @ head, -1)

weights = put((64, 256), None, "model"), put((256, 64), "model"), put((64, 512), None, "model")
decode_inputs = *weights, put((16, 64), "data")
"""


def test_an_argmax_over_a_sharded_dimension_is_a_reduction(tmp_path: Path) -> None:
    """Each device has the best of its own part of the vocabulary: a value and a position of each row are gathered."""
    script = tmp_path / "program.py"
    script.write_text(CHOSEN)
    *_, final = capture(Request(f"{script}:decode", live=False))
    found = {each.strategy: each for each in inspect(final).communication}
    assert found.keys() == {"tensor parallelism", "reductions"}
    assert {each.kind for each in found["tensor parallelism"].collectives} == {"all-reduce"}
    dtypes = sorted(type.dtype for each in found["reductions"].collectives for type in each.result_types)
    assert dtypes == ["f32", "i32"]


CONVOLUTION = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))

def loss(params, x):
    h = jax.lax.conv_general_dilated(x, params["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean = jax.lax.pmean(jnp.mean(h, (0, 1, 2)), "batch")
    return jnp.mean(jnp.square(jax.nn.relu(h - mean) @ params["out"]))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=(P(), P("batch")), out_specs=P(), check_vma=False)
def step(params, x):
    gradients = jax.lax.pmean(jax.grad(loss)(params, x), "batch")
    return jax.tree.map(lambda p, g: p - 0.1 * (g + 1e-4 * p), params, gradients)

step_inputs = ({"conv": jnp.ones((3, 3, 3, 16)), "out": jnp.ones((16, 8))}, jnp.ones((16, 8, 8, 3)))
"""


def test_gradients_of_convolutions_are_gradients(tmp_path: Path) -> None:
    """XLA for CPUs drops the names of convolutions; the jaxpr has what is averaged in its backward pass."""
    script = tmp_path / "program.py"
    script.write_text(CONVOLUTION)
    *_, final = capture(Request(f"{script}:step", live=False))
    found = {each.strategy: each for each in inspect(final).communication}
    parameters = [each for each in final.arguments if each.path.startswith("params")]
    assert found["gradient sync"].gradients == len(parameters) == 2
    assert "averages" not in found


CONVOLVED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))

def loss(params, x):
    x = jax.lax.conv(x, params["kernel"], (1, 1), "SAME")
    shape = x.shape
    x = (x - x.mean((1, 2, 3), keepdims=True)).reshape(*shape[:2], -1)
    wide = {name: jnp.broadcast_to(params[name][:, None], x.shape[1:]) for name in ("scale", "bias")}
    normed = jax.vmap(lambda x: x * wide["scale"] + wide["bias"])(x)
    return jnp.square(jnp.tanh(normed)).mean()

@jax.jit
def step(params, x):
    return jax.tree.map(lambda param, grad: param - grad, params, jax.grad(loss)(params, x))

inputs = (
    {"kernel": jnp.ones((16, 3, 3, 3)), "scale": jnp.ones(16), "bias": jnp.ones(16)},
    jax.ShapeDtypeStruct((8, 3, 16, 16), jnp.float32, sharding=NamedSharding(mesh, P("batch"))),
)
"""


def test_gradients_that_each_device_reduces_further_are_synced(tmp_path: Path) -> None:
    """Of scale and bias, the batch's sums come first: their gradients have all positions until after the all-reduce."""
    script = tmp_path / "program.py"
    script.write_text(CONVOLVED)
    *_, final = capture(Request(f"{script}:step", live=False))
    found = inspect(final).communication
    assert {each.strategy for each in found} == {"gradient sync"}
    assert sum(each.gradients for each in found) == 3


GROUPS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"

NAMED = 'metadata={op_name="jit(f)/dot_general"}'

INDICES = f"""HloModule lookup, replica_count=1, num_partitions=4

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}}

ENTRY main {{
  rows = s32[2]{{0}} parameter(0)
  mask = s32[2]{{0}} parameter(1)
  h = f32[8,4]{{1,0}} parameter(2)
  w = f32[4,8]{{1,0}} parameter(3)
  some = s32[2]{{0}} add(rows, mask)
  every = s32[8]{{0}} all-gather(some), channel_id=1, {GROUPS}, dimensions={{0}}
  product = f32[8,8]{{1,0}} dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  summed = f32[8,8]{{1,0}} all-reduce(product), channel_id=2, {GROUPS}, to_apply=add, {NAMED}
  ROOT out = (s32[8]{{0}}, f32[8,8]{{1,0}}) tuple(every, summed)
}}
"""


@pytest.mark.parametrize(("dtype", "strategy"), [("s32", "other"), ("f32", "tensor parallelism")])
def test_gathered_indices_are_no_tensor_parallelism(dtype: str, strategy: str) -> None:
    """The results of a matmul's partial sums are floats: indices belong to lookups."""
    stage = Stage("hlo", "hlo", Source("module.hlo", INDICES.replace("s32", dtype).encode()))
    found = {each.kind: each.strategy for each in inspect(Capture(stages=(stage,), complete=True)).communication}
    assert found == {"all-reduce": "tensor parallelism", "all-gather": strategy}


WINDOWED = """HloModule windowed, replica_count=1, num_partitions=4

condition {
  state = (s32[], f32[8,8], f32[8,8], f32[8,8], s32[]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(4)
  ROOT more = pred[] compare(i, bound), direction=LT
}

body {
  state = (s32[], f32[8,8], f32[8,8], f32[8,8], s32[]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[8,8] get-tuple-element(state), index=1
  part = f32[8,8] get-tuple-element(state), index=2
  total = f32[8,8] get-tuple-element(state), index=3
  other = s32[] get-tuple-element(state), index=4
  product = f32[8,8] dot(x, part), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  sent = f32[8,8] collective-permute(SENT), channel_id=1, source_target_pairs=PAIRS, NAMED
  added = f32[8,8] add(total, product)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT states = (s32[], f32[8,8], f32[8,8], f32[8,8], s32[]) tuple(next, x, sent, added, other)
}

ENTRY main {
  x = f32[8,8] parameter(0)
  w = f32[8,8] parameter(1)
  zero = s32[] constant(0)
  k0 = s32[] constant(7)
CHAIN
  first = f32[8,8] collective-permute(w), channel_id=2, source_target_pairs=PAIRS, NAMED
  state = (s32[], f32[8,8], f32[8,8], f32[8,8], s32[]) tuple(zero, x, first, x, k300)
  loop = (s32[], f32[8,8], f32[8,8], f32[8,8], s32[]) while(state), condition=condition, body=body
  ROOT out = f32[8,8] get-tuple-element(loop), index=3
}
"""
"""A matmul that overlaps with the gather of its operand, as XLA writes it: parts of `w` go around."""


@pytest.mark.parametrize(
    ("sent", "pairs", "strategies"),
    [
        ("part", "{0,1},{1,2},{2,3},{3,0}", {"ring exchange": 2}),
        ("part", "{0,1},{1,2},{2,3}", {"resharding": 2}),  # edges of parts: the last one is sent nowhere
        ("product", "{0,1},{1,2},{2,3},{3,0}", {"resharding": 2}),
    ],
)
def test_overlapped_matmuls_are_ring_exchanges(sent: str, pairs: str, strategies: dict[str, int]) -> None:
    """Four rounds and the first exchange; what else the loop carries does not matter to the count."""
    chain = "\n".join(f"  k{number + 1} = s32[] add(k{number}, k0)" for number in range(300))
    text = (
        WINDOWED.replace("SENT", sent).replace("PAIRS", f"{{{pairs}}}").replace("CHAIN", chain).replace("NAMED", NAMED)
    )
    final = Capture(stages=(Stage("hlo", "hlo", Source("module.hlo", text.encode())),), complete=True)
    assert purposes(final) == strategies
    assert sorted(each.executions or 0 for each in inspect(final).collectives) == [1, 4]
