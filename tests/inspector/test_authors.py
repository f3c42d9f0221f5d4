"""Who asked for a collective, and in which module: as the program below is written, on every target."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.name_scopes import keys_of_name, merged_parts, module_of_name, scopes
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Collective

from tests.conftest import SampleCapture

PROGRAM = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))

@jax.custom_vjp
def linear(x, w):
    return x @ w

def forward(x, w):
    return x @ w, (x, w)

def backward(kept, dy):
    return dy @ kept[1].T, lax.psum(kept[0].T @ dy, "x")

linear.defvjp(forward, backward)

def project(x, w):
    return jnp.einsum("ab,bc->ac", x, w)

def loss_of_block(params, x):
    with jax.named_scope("attention"):
        x = jnp.tanh(project(x, lax.all_gather(params["attention"]["w"], "x", tiled=True)))
    with jax.named_scope("mlp"):
        x = jnp.tanh(project(x, lax.all_gather(params["mlp"]["w"], "x", tiled=True)))
    return lax.psum(jnp.sum(jnp.sin(linear(x, params["last"]))), "x")

@jax.jit
def step(params, x):
    specs = ({"attention": {"w": P("x")}, "mlp": {"w": P("x")}, "last": P()}, P("x"))
    loss = jax.shard_map(loss_of_block, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
    return jax.grad(loss)(params, x)

def array(*shape):
    return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P("x")))

params = {"attention": {"w": array(64, 32)}, "mlp": {"w": array(32, 128)}}
step_inputs = (params | {"last": jax.ShapeDtypeStruct((128, 16), "float32")}, array(16, 64))

sharded = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))

def asked(x, w):
    y = jax.sharding.reshard(x, NamedSharding(sharded, P()))
    return y, jnp.dot(x, w, out_sharding=NamedSharding(sharded, P()))

def given(*spec):
    return jax.ShapeDtypeStruct((16, 16), "float32", sharding=NamedSharding(sharded, P(*spec)))

asked_inputs = (given(None, "x"), given("x", None))

whole = NamedSharding(sharded, P())

def resharded(x, ws):
    def layer(h, w):
        h = jnp.tanh(jnp.dot(h, jax.sharding.reshard(w, whole)))  # moves a slice of ws
        return h, None
    return (
        jax.lax.scan(layer, jnp.sin(x), ws)[0],
        jax.sharding.reshard(x, whole),  # moves an argument
    )

resharded_inputs = (
    given("x", None),
    jax.ShapeDtypeStruct((3, 16, 16), "float32", sharding=NamedSharding(sharded, P(None, "x"))),
)

def descend(w, x):
    loss = lambda w: (jnp.dot(x, jax.sharding.reshard(w, whole)) ** 2).sum()
    return w - jax.grad(loss)(w)

descend_inputs = (given("x", None), given("x", None))

def constrained(x):
    y = lax.with_sharding_constraint(jnp.sin(x), rows)
    return jnp.cos(
        lax.with_sharding_constraint(y, NamedSharding(mesh, P()))  # moves another line's value
    )

constrained_inputs = (jax.ShapeDtypeStruct((16, 16), "float32", sharding=rows),)

def helped(params, x):
    x = jnp.tanh(project(x, params["layers"][0]["attention"]))
    return jnp.sum(project(x, params["layers"][0]["mlp"]) ** 2)

@jax.jit
def gradient(params, x):
    return jax.grad(helped)(params, x)

def sharded_by(shape, *spec):
    return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*spec)))

gradient_inputs = (
    {"layers": [{"attention": sharded_by((32, 64), None, "x"), "mlp": sharded_by((64, 32), "x", None)}]},
    sharded_by((16, 32)),
)
"""


def compiled(tmp_path: Path, function: str, target: str = "cpu") -> list[Collective]:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    *_, final = capture(Request(f"{script}:{function}", target=target, live=False))
    assert final.failure is None, final.failure
    return [each for each in inspect(final).collectives if each.stage == "hlo"]


def parts(found: list[Collective]) -> Counter[tuple[str, str, tuple[str, ...]]]:
    """The origin, pass and module of each collective, of a combined one those of each part."""
    return Counter((each.origin, each.direction, each.module) for one in found for each in one.parts or (one,))


WRITTEN = {
    ("user", "forward", ("attention",)): 1,
    ("user", "forward", ("mlp",)): 1,
    ("autodiff", "backward", ("attention",)): 1,
    ("autodiff", "backward", ("mlp",)): 1,
    ("user", "backward", ("last",)): 1,
    ("autodiff", "backward", ("last",)): 1,
}
"""The gathers, the scatters that they transpose to, the sum in the user's own backward pass, and that of shard_map's,
which sums the gradient of what all devices are given."""


@pytest.mark.parametrize(
    "target",
    [
        "cpu",
        pytest.param(
            "tpu:v5p:2x2x2",
            marks=pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"),
        ),
    ],
)
def test_authors_are_the_same_on_every_target(tmp_path: Path, target: str) -> None:
    found = parts(compiled(tmp_path, "step", target))
    scalar = {key: count for key, count in found.items() if key not in WRITTEN}
    assert {key: found[key] for key in WRITTEN} == WRITTEN, found
    assert set(scalar) <= {("autodiff", "backward", ())}, "what the sum of the loss transposes to"


def test_what_explicit_axes_ask_for(tmp_path: Path) -> None:
    found = compiled(tmp_path, "asked")
    assert {each.kind for each in found} == {"all-gather", "all-reduce"}
    assert {each.origin for each in found} == {"explicit"}


@pytest.mark.parametrize(
    ("function", "origin", "comments"),
    [
        ("resharded", "explicit", ("moves a slice of ws", "moves an argument")),
        ("constrained", "partitioner", ("moves another line's value",)),
    ],
)
def test_what_moves_a_value_is_for_the_request(
    tmp_path: Path, function: str, origin: str, comments: tuple[str, ...]
) -> None:
    """JAX 0.12 names a gather after the value that it moves, which another line made."""
    found = [each for each in compiled(tmp_path, function) if each.kind == "all-gather"]
    lines = PROGRAM.splitlines()
    expected = {next(number for number, line in enumerate(lines, 1) if each in line) for each in comments}
    assert {(each.origin, each.direction, each.source.line) for each in found} == {
        (origin, "forward", line) for line in expected
    }


def test_the_backward_pass_of_what_explicit_axes_ask_for(tmp_path: Path) -> None:
    """JAX gives the products of a backward pass the `out_sharding` that its types ask for."""
    found = compiled(tmp_path, "descend")
    assert {(each.kind, each.origin, each.direction) for each in found} == {
        ("all-gather", "explicit", "forward"),
        ("all-reduce", "explicit", "backward"),
    }


def test_weights_of_one_shape_are_told_apart(sample: SampleCapture) -> None:
    """One of them is gathered for a constraint, the others for the products that take them."""
    run = sample("transformer:train_step")
    assert run.script_text is not None
    lines = run.script_text.text().splitlines()
    moved = [each for each in inspect(run).collectives if each.stage == "hlo" and each.argument is not None]
    for each in moved:
        *_, key = module_of_name(each.argument or "")
        assert each.module[-1] == key
        assert "layers" not in each.module or any(key in lines[frame.line - 1] for frame in each.source.stack), each


def test_modules_by_the_parameters(tmp_path: Path) -> None:
    """Both layers call one helper, on one line: what they take tells them apart."""
    found = compiled(tmp_path, "gradient")
    assert {each.origin for each in found} == {"partitioner"}
    assert ("layers", "0", "mlp") in {each.module for each in found}
    (forward,) = (each for each in found if each.direction == "forward" and each.module)
    assert forward.argument == "params['layers'][0]['mlp']"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("jit(loss)/transpose(jvp(myloss))/B/m/up", ("myloss", "B", "m", "up")),
        ("jit(f)/jvp(bte,ezhd->zbhtd)", ()),
        ("jit(loss)/jvp(a/b)/while/body/closed_call/layers/mm", ("a", "b", "layers", "mm")),
        ("layers/checkpoint/rematted_computation/mm/q", ("layers", "mm", "q")),
        ("transpose(jvp(vmap(x)))/cond/branch_1_fun/y", ("x", "y")),
        ("transpose(jvp(M))/h/jvp(M)/h/checkpoint/0/mlp", ("M", "h", "0", "mlp")),
        ("jvp(M)/h/vmap(M)/up", ("M", "h", "M", "up")),
        ("jvp(M)/norm/norm.scale", ("M", "norm.scale")),
    ],
)
def test_scopes_of_a_path(path: str, expected: tuple[str, ...]) -> None:
    assert scopes(path) == expected


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("jit(f)/jvp(g)/dot", ("jit(f)/jvp(g)/dot",)),
        ("jit(f)/(jvp()/a:jvp()/b)/c", ("jit(f)/jvp()/a/c", "jit(f)/jvp()/b/c")),
        ("jit(f)/transpose(jvp())/mul;jit(f)/jvp()/tanh", ("jit(f)/transpose(jvp())/mul", "jit(f)/jvp()/tanh")),
        ("jit(f)/layer/mul;tanh", ("jit(f)/layer/mul", "jit(f)/layer/tanh")),
        ("params['a;b']", ("params['a;b']",)),
    ],
)
def test_names_that_xla_joined(name: str, parts: tuple[str, ...]) -> None:
    assert merged_parts(name) == parts


def test_recomputed_modules_are_those_of_the_forward_pass() -> None:
    """JAX names what a backward pass recomputes, and transposes, once more from the outermost scope on."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        with jax.named_scope("model"), jax.named_scope("h"):

            @jax.checkpoint
            def block(x: jax.Array, w: jax.Array) -> jax.Array:
                with jax.named_scope("mlp"):
                    return jnp.tanh(x @ w)

            return block(block(x, w), w).sum()

    text = jax.jit(jax.grad(loss)).lower(*[jax.ShapeDtypeStruct((8, 8), "float32")] * 2).as_text(debug_info=True)
    names = [name for name in re.findall(r'loc\("([^"]*)"', text) if name.endswith("dot_general")]
    assert any("transpose" in name for name in names)
    assert {scopes(name.rpartition("/")[0]) for name in names} == {("model", "h", "mlp")}


def test_keys_of_names() -> None:
    assert keys_of_name("model.layers[0].attn['a.b'].kernel") == ("model", "layers", "0", "attn", "a.b", "kernel")
    assert module_of_name("state[0]['layers'][1]['wq']") == ("layers", "1", "wq")
    assert module_of_name("state['up']['kernel'].value") == ("up", "kernel")
    assert module_of_name("params.head.value") == ("head", "value")
    assert keys_of_name("not a name(") == ("not a name(",)


RING = """
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def turned(x):
    return lax.ppermute(x, "x", [(0, 1), (1, 2), (2, 3), (3, 0)])

@jax.custom_vjp
def scaled(x, by):
    return x * by

def backward(kept, g):
    def step(carry, _):
        total, g = carry
        return (total + g, turned(g)), None  # in the loop
    (total, _), _ = lax.scan(step, (g, g), None, 3)
    return total, lax.pmax(g, "x")  # behind it

scaled.defvjp(lambda x, by: (x * by, None), backward)

@jax.jit
def step(x):
    def loss(x):
        return lax.psum(jnp.sum(jnp.sin(scaled(x, 2 * x))), "x")
    mapped = jax.shard_map(loss, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    return jax.grad(mapped)(x)  # derived here

step_inputs = (jax.ShapeDtypeStruct((8,), "float32"),)
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 gives the sum the line of the gradient")
def test_a_backward_function_keeps_its_own_lines(tmp_path: Path) -> None:
    """JAX gives what it does the lines of the call in the forward pass."""
    script = tmp_path / "ring.py"
    script.write_text(RING)
    *_, final = capture(Request(f"{script}:step", live=False))
    found = {each.kind: each for each in inspect(final).collectives if each.stage == "hlo" and each.origin == "user"}
    lines = RING.splitlines()
    permute, largest = found["collective-permute"], found["all-reduce"]
    inner, *_, outer = (lines[frame.line - 1] for frame in permute.source.stack)
    assert "lax.ppermute" in inner
    assert any("# in the loop" in lines[frame.line - 1] for frame in permute.source.stack)
    assert "# derived here" in outer
    assert "# behind it" in lines[(largest.source.line or 0) - 1]
    assert {permute.direction, largest.direction} == {"backward"}
