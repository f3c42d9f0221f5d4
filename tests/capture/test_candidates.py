"""Candidates of a training step, which is made so that each kind of mistake is in it, on an abstract mesh."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardscope.inspector.capture.worker import modules
from shardscope.inspector.capture.worker.requests.candidates import Candidate, Requests
from shardscope.inspector.capture.worker.requests.lowered import Lowered
from shardscope.inspector.capture.worker.requests.price import Pricing

MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def typed(shape: tuple[int, ...], *spec: str | None, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, PartitionSpec(*spec)))


def step(params: Any, opt: Any, batch: Any) -> Any:
    def loss(params: Any) -> jax.Array:
        hidden = params["embed"][batch["tokens"]]  # lookup
        for layer in params["layers"]:
            hidden = jnp.tanh(hidden @ layer["w"])  # product
        return jnp.mean((hidden - batch["target"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    mu = jax.tree.map(lambda mu, gradient: 0.9 * mu + gradient, opt["mu"], grads)
    return jax.tree.map(lambda param, mu: param - 0.1 * mu, params, mu), {"mu": mu, "count": opt["count"] + 1}, value


@pytest.fixture(scope="module")
def requests() -> Iterator[Requests]:
    """Of a step whose moments are whole, and whose parameters are not."""

    def leaves(spec: tuple[str | None, ...]) -> dict[str, Any]:
        return {"embed": typed((64, 32), "y"), "layers": [{"w": typed((32, 32), *spec)} for _ in range(2)]}

    opt = {"mu": leaves(()), "count": typed((), dtype=jnp.int32)}
    batch = {"tokens": typed((128,), "x", dtype=jnp.int32), "target": typed((128, 32), "x")}
    lowered = jax.jit(step).trace(leaves((None, "y")), opt, batch).lower(lowering_platforms=("cpu",))
    with modules.context(), modules.ir.Location.unknown():
        yield Requests(Lowered(modules.text_of(lowered.compiler_ir("stablehlo")).encode()))


@pytest.fixture(scope="module")
def candidates(requests: Requests) -> list[Candidate]:
    return list(requests.candidates(Pricing(requests.lowered)))


def test_results_are_tied_to_arguments_and_moments_to_parameters(requests: Requests) -> None:
    lowered = requests.lowered
    named = {
        lowered.result_names[result].partition("]")[2]: lowered.names[argument]
        for result, argument in requests.tied.items()
    }
    leaves = ("['embed']", "['layers'][0]['w']", "['layers'][1]['w']")
    assert named == {
        f"{side}{leaf}": f"{root}{leaf}" for root, side in (("params", ""), ("opt['mu']", "['mu']")) for leaf in leaves
    }
    assert [lowered.names[number] for number in requests.data] == ["batch['target']", "batch['tokens']"]
    assert requests.batch == [("x",)]
    homes = {lowered.names[number]: lowered.names[home] for number, home in requests.home.items()}
    assert homes == {f"opt['mu']{leaf}": f"params{leaf}" for leaf in leaves}
    groups = [{lowered.names[number] for number in group} for group in requests.groups()]
    for side in ("params", "opt['mu']"):
        assert {f"{side}['layers'][{number}]['w']" for number in range(2)} in groups


def test_a_result_gets_the_spec_of_its_argument(requests: Requests, candidates: list[Candidate]) -> None:
    lowered = requests.lowered
    found = [each for each in candidates if each.kind == "b"]
    assert found
    for each in found:
        for change in each.changes:
            assert change.kind == "result"
            assert change.spec == lowered.arguments[requests.tied[change.number]]
    assert max(len(each.changes) for each in found) >= 3


def test_moments_get_the_spec_of_their_parameter(requests: Requests, candidates: list[Candidate]) -> None:
    """Those of all layers together; those of the table have it already."""
    lowered = requests.lowered
    found = [each for each in candidates if each.kind == "c"]
    arguments = [
        {lowered.names[change.number] for change in each.changes if change.kind == "argument"} for each in found
    ]
    assert {f"opt['mu']['layers'][{number}]['w']" for number in range(2)} in arguments
    assert not any("opt['mu']['embed']" in each for each in arguments)
    specs = {change.spec and change.spec.dims for each in found for change in each.changes}
    assert specs == {((), ("y",))}


def test_the_batch_is_requested_where_parameters_meet_data(requests: Requests, candidates: list[Candidate]) -> None:
    lowered = requests.lowered
    with open(__file__) as lines:
        marked = {text.rsplit("# ", 1)[1].strip(): number for number, text in enumerate(lines, 1) if "  # " in text}
    found = [each for each in candidates if each.kind == "a"]
    seen = {
        (lowered.operations[change.number].name, lowered.stack(change.number)[0].line)
        for each in found
        for change in each.changes
    }
    assert seen == {("stablehlo.gather", marked["lookup"]), ("stablehlo.dot_general", marked["product"])}
    for each in found:
        for change in each.changes:
            assert change.kind == "new"
            assert change.spec is not None
            assert change.spec.dims == (("x",), ())
    assert {change.spec.open for each in found for change in each.changes if change.spec} == {(), (1,)}


def test_other_specs_are_one_step_away(requests: Requests, candidates: list[Candidate]) -> None:
    """Of an argument of data, the batch stays divided; every spec divides its array evenly, and each comes once."""
    lowered = requests.lowered
    assert len(candidates) == len(set(candidates))
    seen: dict[str, set[Any]] = {}
    for each in candidates:
        for change in each.changes if each.kind == "d" else ():
            assert change.kind in ("argument", "result")
            assert change.spec is not None
            types = lowered.types if change.kind == "argument" else lowered.result_types
            assert lowered.fits(change.spec.dims, types[change.number].shape)
            if change.kind == "argument":
                seen.setdefault(lowered.names[change.number], set()).add(change.spec.dims)
    assert {(("x", "y"), ()), (("x",), ("y",))} <= seen["batch['target']"]
    assert seen["params['layers'][0]['w']"] == seen["params['layers'][1]['w']"]
    assert {((), ("y", "x")), (("x",), ("y",)), (("y",), ())} <= seen["params['layers'][0]['w']"]
    assert ((), ()) not in seen["params['layers'][0]['w']"]


def test_open_results_are_held_as_their_arguments(requests: Requests) -> None:
    lowered = requests.lowered
    pinned = requests.pinned(())
    assert {each.number: each.spec for each in pinned} == {
        result: lowered.arguments[argument] for result, argument in requests.tied.items()
    }
    assert {each.kind for each in pinned} == {"result"}


def test_data_are_what_no_result_may_become() -> None:
    """Of the tokens and a cache that comes back changed, which could be a batch of as many layers."""

    def decode(cache: jax.Array, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        return cache * 0.5, jnp.tanh(tokens).sum(1)

    lowered = jax.jit(decode).trace(typed((8, 16)), typed((32, 16))).lower(lowering_platforms=("cpu",))
    with modules.context(), modules.ir.Location.unknown():
        found = Requests(Lowered(modules.text_of(lowered.compiler_ir("stablehlo")).encode()))
        assert [found.lowered.names[number] for number in found.data] == ["tokens"]


def test_places_where_data_meet_a_weight_and_a_bias() -> None:
    def forward(params: Any, x: jax.Array) -> Any:
        hidden = x @ params["w"]  # weight
        again = x @ x.T
        return jnp.tanh(hidden + params["b"]).sum(1), again, params["w"] @ params["w"].T  # bias

    params = {"w": typed((32, 64), None, "y"), "b": typed((64,), "y")}
    lowered = jax.jit(forward).trace(params, typed((128, 32), "x")).lower(lowering_platforms=("cpu",))
    with modules.context(), modules.ir.Location.unknown():
        found = Lowered(modules.text_of(lowered.compiler_ir("stablehlo")).encode())
        requests = Requests(found)
        made = [each for each in requests.candidates(Pricing(found)) if each.kind == "a"]
        places = {
            (found.operations[change.number].name, found.stack(change.number)[0].line)
            for each in made
            for change in each.changes
        }
    lines = Path(__file__).read_text().splitlines()
    weight, bias = (
        next(n for n, text in enumerate(lines, 1) if text.endswith(f"  # {name}")) for name in ("weight", "bias")
    )
    assert places == {("stablehlo.dot_general", weight), ("stablehlo.broadcast_in_dim", bias)}


@pytest.mark.parametrize(("parameters", "has_home"), [("params", True), ("other", False)])
def test_moments_beside_the_parameters_of_one_state(parameters: str, has_home: bool) -> None:
    """They are those of what is called parameters, whatever is deeper."""

    def update(state: Any) -> Any:
        return {name: {"w": each["w"] * 0.5} for name, each in state.items()}

    state = {name: {"w": typed((8, 16), "x" if name == parameters else None)} for name in (parameters, "zmu")}
    lowered = jax.jit(update).trace(state).lower(lowering_platforms=("cpu",))
    with modules.context(), modules.ir.Location.unknown():
        found = Requests(Lowered(modules.text_of(lowered.compiler_ir("stablehlo")).encode()))
        homes = {found.lowered.names[number]: found.lowered.names[home] for number, home in found.home.items()}
    assert homes == ({"state['zmu']['w']": f"state['{parameters}']['w']"} if has_home else {})


def best_of(function: Any, *arguments: Any, by: str) -> float:
    """The cost of the program with the best new constraint, as a share of that without it."""
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    with modules.context(), modules.ir.Location.unknown():
        found = Lowered(modules.text_of(lowered.compiler_ir("stablehlo")).encode())
        requests, pricing = Requests(found), Pricing(found)
        new = [each.changes for each in requests.candidates(pricing) if each.kind == "a"]
        costs = [float(getattr(pricing.of(requests.pinned(changes)), by)) for changes in ((), *new)]
    return min(costs[1:]) / costs[0]


def test_a_batch_that_a_reshape_merged_is_sharded_again() -> None:
    """A key is no batch, though it is as little state."""

    def render(params: Any, rays: jax.Array, key: jax.Array) -> jax.Array:
        depths = jax.random.uniform(key, (4,))
        points = (depths[:, None, None] * rays).reshape(-1, 8)
        return (jnp.tanh(points @ params["in"]) @ params["out"]).mean()

    params = {"in": typed((8, 64)), "out": typed((64, 64))}
    assert best_of(render, params, typed((128, 8), "x"), typed((2,), dtype=jnp.uint32), by="flops") == 1 / 4


def test_stacked_gradients_are_orthogonalized_by_layers() -> None:
    def update(stack: jax.Array, x: jax.Array) -> jax.Array:
        gradient = jax.grad(lambda stack: jnp.sum(jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, stack)[0]))(
            stack
        )
        for _ in range(5):
            gradient = 2 * gradient - gradient @ gradient.swapaxes(1, 2) @ gradient
        return stack - gradient

    assert best_of(update, typed((8, 64, 64), None, "x"), typed((128, 64), "x"), by="bytes") < 1 / 2
