"""Requests that are read from lowered modules and changed there, in this process, on abstract meshes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, product
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardscope.inspector.capture.worker import modules
from shardscope.inspector.capture.worker.requests import main
from shardscope.inspector.capture.worker.requests.candidates import Requests
from shardscope.inspector.capture.worker.requests.lowered import Change, Light, Lowered, Spec, spec_in
from shardscope.inspector.capture.worker.requests.main import Search, priced
from shardscope.inspector.capture.worker.requests.price import Pricing
from shardscope.inspector.capture.worker.tagging import names_of

REQUESTED = "# requested"


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with modules.context(), modules.ir.Location.unknown():
        yield


def lowered(kind: AxisType) -> Any:
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    by_rows = NamedSharding(mesh, PartitionSpec("x", None))
    request = jax.sharding.reshard if kind is AxisType.Explicit else jax.lax.with_sharding_constraint

    def fn(a: jax.Array, w: jax.Array, unused: jax.Array) -> tuple[jax.Array, jax.Array]:
        hidden = jnp.tanh(a @ w) * 2
        hidden = request(hidden, by_rows)  # requested
        return jnp.sin(hidden), hidden.sum(0)

    a, w, unused = (
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
        for shape, *spec in (((8, 16), "x", None), ((16, 32), None, "y"), ((8,), None))
    )
    return jax.jit(fn).trace(a, w, unused).lower(lowering_platforms=("cpu",))


def read(found: Any) -> Lowered:
    return Lowered(modules.text_of(found.compiler_ir("stablehlo")).encode())


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_requests_are_those_of_the_source(kind: AxisType) -> None:
    found = read(lowered(kind))
    assert found.axes == {"x": 4, "y": 2}
    assert found.names == ["a", "w"]
    assert [each.dims for each in found.arguments] == [(("x",), ()), ((), ("y",))]
    assert found.results == [None, None]
    assert found.result_names == ["result[0]", "result[1]"]
    assert found.is_explicit == (kind is AxisType.Explicit)
    (number,) = found.constraints
    assert found.operations[number].name == "sdy.sharding_constraint"
    with open(__file__) as lines:
        line = next(number for number, text in enumerate(lines, 1) if text.rstrip().endswith(f"  {REQUESTED}"))
    first = found.stack(number)[0]
    assert (first.file, first.line) == (__file__, line)
    assert found.is_forward(number)
    assert [found.parts(each) for each in found.arguments] == [4, 2]
    assert [found.fits((("x",), ()), shape) for shape in ((8, 3), (6, 4))] == [True, False]
    owners = [found.owner_of(number) for number in range(2)]
    names = [None if number is None else found.operations[number].name for number in owners]
    assert names == ["sdy.sharding_constraint"] * 2 if found.is_explicit else ["stablehlo.sine", "stablehlo.reduce"]


def test_requests_that_are_changed_are_read_again() -> None:
    found = read(lowered(AxisType.Auto))
    (constraint,) = found.constraints
    tanh = next(number for number, each in enumerate(found.operations) if each.name == "stablehlo.tanh")
    spec, columns = Spec((("x", "y"), ())), Spec(((), ("y",)))
    changes = [
        Change("argument", 0, spec),
        Change("result", 1, Spec((("y",),))),
        Change("constraint", constraint, columns),
    ]
    again = Lowered(str(found.changed(changes)).encode())
    assert [each.dims for each in again.arguments] == [spec.dims, found.arguments[1].dims]
    assert [each and each.dims for each in again.results] == [None, (("y",),)]
    shardings = [str(each.attributes["sharding"]) for each in again.operations if "sharding" in each.attributes]
    assert ['[{}, {"y"}]' in each for each in shardings] == [True]
    more = found.changed([Change("new", tanh, spec)])
    written = modules.find(more.operation, {"sdy.sharding_constraint"})
    assert [each.operands[0].owner.name for each in written] == ["stablehlo.tanh", "stablehlo.multiply"]
    (use,) = written[0].results[0].uses
    assert use.owner.name == "stablehlo.multiply"
    assert not modules.find(
        found.changed([Change("constraint", constraint, None)]).operation, {"sdy.sharding_constraint"}
    )
    assert found.constraints == [constraint]


def test_names_are_those_of_the_arguments_that_the_program_keeps() -> None:
    """JAX leaves out an argument that is not used."""
    found = lowered(AxisType.Auto)
    names = names_of(found, ["a", "w", "unused"], ["first", "second"])
    assert names is not None
    assert (list(names.arguments), list(names.results)) == (["a", "w"], ["first", "second"])
    assert names_of(object(), ["a"], ["b"]) is None


def test_a_price_is_what_rings_send() -> None:
    """A gather over y, whose 2 devices send half of 256 bytes each, and a sum of 128 bytes over the 4 of x."""
    found = Pricing(read(lowered(AxisType.Auto)))
    price = found.of()
    assert price.bytes == 256 // 2 + 2 * 128 * 3 // 4
    assert price.arguments == 8 * 16 * 4 / 4 + 16 * 32 * 4 / 2
    assert price.results == 8 * 32 * 4 / 4 + 32 * 4
    assert price.flops == 2 * 8 * 16 * 32 / 8
    whole = found.of([Change("argument", 1, Spec(((), ())))])
    assert (whole.bytes, whole.arguments) == (2 * 128 * 3 // 4, 8 * 16 * 4 / 4 + 16 * 32 * 4)
    assert whole.flops == 2 * 8 * 16 * 32 / 4
    assert found.of() == price


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (lambda x: jax.lax.psum(x, "x"), 2 * 3 / 4),
        (lambda x: jax.lax.psum(x, "y"), 2 * 1 / 2),
        (lambda x: jax.lax.psum(x, ("x", "y")), 2 * 7 / 8),
        (lambda x: jax.lax.all_gather(x, "x", axis=0, tiled=True)[:8], 4 * 3 / 4),
        (lambda x: jax.lax.all_to_all(x, "x", 0, 0, tiled=True), 3 / 4),
        (lambda x: jax.lax.ppermute(x, "x", [(0, 1)]), 1),
        (lambda x: jnp.sin(x), 0),
    ],
)
def test_prices_in_manual_code_and_loops(body: Any, sent: float, times: int) -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    def fn(x: jax.Array) -> jax.Array:
        spec = PartitionSpec("x", "y")
        mapped = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        return jax.lax.fori_loop(0, times, lambda _, x: mapped(x), x)

    x = jax.ShapeDtypeStruct((32, 8), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("x", "y")))
    found = Pricing(read(jax.jit(fn).trace(x).lower(lowering_platforms=("cpu",))))
    assert found.of().bytes == times * sent * 8 * 4 * 4


def test_prices_are_those_of_the_whole_module() -> None:
    """Of a step with moments, whose operations on single values and with constants are left out before it is priced.

    Where shardings meet, Shardy may settle on another one without them: for one change in ten at most.
    """
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    def step(w: Any, m: Any, v: Any, x: jax.Array) -> Any:
        def loss(w: Any) -> jax.Array:
            h = jax.lax.with_sharding_constraint(jnp.tanh(x @ w["a"]), NamedSharding(mesh, PartitionSpec("x")))
            return jnp.mean((h @ w["b"]) ** 2)

        g = jax.grad(loss)(w)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        return jax.tree.map(lambda w, m, v: w - 0.1 * m / (jnp.sqrt(v) + 1e-8), w, m, v), m, v

    def like(*shape: int, spec: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))

    weights = {
        "a": like(32, 64, spec=PartitionSpec("x", "y")),
        "b": like(64, 16, spec=PartitionSpec("y")),
    }
    x = like(64, 32, spec=PartitionSpec("x"))
    traced = jax.jit(step).trace(weights, weights, weights, x)
    light, whole = (read(traced.lower(lowering_platforms=("cpu",))) for _ in range(2))
    numbers = range(len(whole.operations))
    vars(whole)["light"] = Light(whole.module, dict(zip(numbers, numbers, strict=True)))
    assert len(light.light.places) < 0.8 * len(numbers)
    requests, prices = Requests(light), Pricing(light)
    candidates = [(), *(each.changes for each in requests.candidates(prices))]
    assert len(candidates) > 20
    pairs = [(prices.of(each), Pricing(whole).of(each)) for each in candidates]
    assert pairs[0][0] == pairs[0][1]
    assert min(one.bytes for one, _ in pairs) == min(other.bytes for _, other in pairs)
    assert sum(one != other for one, other in pairs) <= len(pairs) / 10


@pytest.mark.parametrize(
    ("dims", "open_", "text"),
    [
        ((("x", "y"), (), ("z",)), (), "P(('x', 'y'), None, 'z')"),
        (((), ("x",), ()), (), "P(None, 'x')"),
        (((), ()), (0,), "P(P.UNCONSTRAINED)"),
        ((("x:(2)2",), ("y",)), (1,), "P('x:(2)2', 'y')"),
        ((), (), "P()"),
    ],
)
def test_specs_are_read_as_shardy_prints_them(dims: Any, open_: tuple[int, ...], text: str) -> None:
    spec = Spec(dims, open_)
    written = spec.sdy("mesh")
    assert spec_in(written) == spec
    assert spec_in(str(modules.ir.Attribute.parse(written))) == spec
    assert spec.is_spelled == (":" not in text)
    assert str(spec) == text


def gathered() -> Lowered:
    """A module in which a constraint gathers what is only added up."""
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    def fn(w: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        whole = jax.lax.with_sharding_constraint(jnp.tanh(a @ w), NamedSharding(mesh, PartitionSpec(None, None)))
        return w * 0.9, (whole * 2).sum()

    w, a = (
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
        for shape, *spec in (((64, 32), None, "y"), ((128, 64), "x", None))
    )
    return read(jax.jit(fn).trace(w, a).lower(lowering_platforms=("cpu",)))


def test_a_constraint_that_costs_most_is_left_out_first() -> None:
    """The product is of 16 KiB, of which a device has an eighth; without the constraint only a sum is sent."""
    module = gathered()
    found = priced(module, math.inf)
    assert found["today"]["bytes"] == 128 * 32 * 4 * (1 / 2 / 4 + 3 / 4)
    assert found["today"]["flops"] == 2 * 128 * 64 * 32 / 8
    first, *others = found["candidates"]
    assert first["price"] == 2 * 4 * 7 // 8
    (change,) = first["changes"]
    stack = module.stack(module.constraints[0])
    assert change == {
        "kind": "constraint",
        "spec": None,
        "spelled": True,
        "name": "sdy.sharding_constraint",
        "now": "P()",
        "frames": [list(each) for each in stack],
    }
    prices = [each["price"] for each in found["candidates"]]
    assert prices == sorted(prices)
    assert prices[-1] < found["today"]["bytes"]
    changed = {each["kind"] for other in others for each in other["changes"]}
    assert changed <= {"argument", "result", "constraint", "new"}
    assert priced(module, -math.inf)["candidates"] == []


def test_a_search_gives_todays_specs_first_and_prices_of_them() -> None:
    module = gathered()
    search, pricing = Search(module), Pricing(module)
    today, *others = search.points(math.inf)
    assert today.price.bytes == priced(module, math.inf)["today"]["bytes"]
    assert others
    for each in others:
        assert pricing.of(each.changes) == each.price
        assert each.price.bytes < today.price.bytes or each.held < today.held
    kept = Search(module, frozenset({"w"})).points(math.inf)
    assert kept
    assert not [change for each in kept for change in each.changes if change.kind == "argument" and change.number == 0]


@pytest.mark.parametrize("most", [400, 0])
def test_a_search_or_a_beam_finds_what_sends_least_and_what_holds_least(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all assignments of axes to the dimensions of both arguments, with all specs of the constraint, one by one."""
    monkeypatch.setattr(main, "MAX_LISTED", most)
    module = gathered()
    pricing, requests = Pricing(module), Requests(module)
    places = [tuple((dim, other) for dim in (None, 0, 1) for other in (None, 0, 1)) for _ in range(2)]
    prices = []
    (constraint,) = (number for members in requests.constraint_groups() for number in members)
    now = module.requested(constraint)
    others = (now, None, *requests.others(now, module.constrained_type(constraint)))
    for *state, spec in product(*places, others):
        specs = {
            number: Spec(
                tuple(tuple(axis for axis, at in zip("xy", place, strict=True) if at == dim) for dim in range(2))
            )
            for number, place in enumerate(state)
        }
        changed = {number: spec for number, spec in specs.items() if spec.dims != module.arguments[number].dims}
        change = () if spec is now else (Change("constraint", constraint, spec),)
        prices.append(pricing.of(requests.pinned((*requests.with_results(changed), *change))))
    points = Search(module).points(math.inf)
    today = points[0]
    flops = [each for each in prices if each.flops <= today.price.flops * 1.1]
    light = [each for each in flops if each.arguments + each.results <= today.held * 1.05]
    assert min(each.price.bytes for each in points) == min(each.bytes for each in flops)
    assert min(each.price.bytes for each in points if each.held <= today.held * 1.05) == min(
        each.bytes for each in light
    )
    if most:
        assert min(each.held for each in points) == min(each.arguments + each.results for each in flops)
    assert all(each.price.flops <= today.price.flops * 1.1 for each in points)


def test_axes_trade_places_in_all_specs_at_once() -> None:
    """The batch over the larger axis, weights over the other one: each change alone sends more."""
    mesh = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))

    def fn(up: jax.Array, scale: jax.Array, down: jax.Array, bias: jax.Array, a: jax.Array) -> jax.Array:
        hidden = jax.nn.gelu((a @ up.astype(a.dtype)) * scale)
        return a + (hidden @ down.astype(a.dtype)) * bias

    arguments = (
        jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))
        for shape, dtype, *spec in (
            ((512, 2048), jnp.int8, "y"),
            ((2048,), jnp.float32),
            ((2048, 512), jnp.int8, None, "y"),
            ((512,), jnp.float32),
            ((512, 512), jnp.float32, "x"),
        )
    )
    module = read(jax.jit(fn).trace(*arguments).lower(lowering_platforms=("cpu",)))
    pricing, requests = Pricing(module), Requests(module)
    swapped = {0: Spec(((), ("x",))), 1: Spec((("x",),)), 2: Spec((("x",), ())), 4: Spec((("y",), ()))}
    known = pricing.of(requests.pinned(requests.with_results(swapped)))
    today, *others = Search(module).points(math.inf)
    fit = [each for each in others if each.held <= today.held]
    assert known.arguments + known.results <= today.held
    assert min(each.price.bytes for each in fit) <= known.bytes < today.price.bytes / 4
    less = [each for each in others if each.price.bytes < today.price.bytes]
    pairs = [(a, b) for a in less for b in less if set(a.changes) < set(b.changes)]
    assert pairs
    assert all(a.price.bytes > b.price.bytes or a.held > 1.01 * b.held for a, b in pairs)


def test_a_gradient_is_constrained_as_its_parameter_is_placed() -> None:
    """One table may have both specs: they are changed together."""
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    by_rows = NamedSharding(mesh, PartitionSpec("x"))

    def fn(p: dict[str, jax.Array], m: dict[str, jax.Array], a: jax.Array) -> Any:
        def loss(p: dict[str, jax.Array]) -> jax.Array:
            hidden = jax.lax.with_sharding_constraint(a @ p["up"], by_rows)
            return ((hidden.astype(jnp.bfloat16) @ p["down"].astype(jnp.bfloat16)) ** 2).mean()

        gradients = jax.lax.with_sharding_constraint(jax.grad(loss)(p), by_rows)  # requested
        m = jax.tree.map(lambda m, gradient: 0.9 * m + gradient, m, gradients)
        return jax.tree.map(lambda p, m: p - 0.1 * m / (1 + jnp.abs(m)), p, m), m

    p = {name: jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=by_rows) for name in ("up", "down")}
    found = read(jax.jit(fn).trace(p, p, p["up"]).lower(lowering_platforms=("cpu",)))
    requests, spec = Requests(found), Spec(((), ("x",)))
    lines = {}
    for name in ("up", "down"):
        numbers = [number for number, path in enumerate(found.names) if name in path]
        changes = requests.with_results(dict.fromkeys(numbers, spec))
        constraints = [each.number for each in changes if each.kind == "constraint"]
        lines[name] = [frame.line for number in constraints for frame in found.stack(number)[:1]]
        assert len(constraints) == 1
    assert lines["up"] == lines["down"] != []


def mlp() -> Lowered:
    mesh = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))

    def fn(p: dict[str, jax.Array], m: dict[str, jax.Array], a: jax.Array, b: jax.Array) -> Any:
        def loss(p: dict[str, jax.Array]) -> jax.Array:
            return (((jax.nn.gelu(a @ p["up"]) @ p["down"] + a) @ p["head"] - b) ** 2).mean()

        m = jax.tree.map(lambda m, gradient: 0.9 * m + gradient, m, jax.grad(loss)(p))
        return jax.tree.map(jnp.subtract, p, m), m

    def array(*shape: int, spec: tuple[str, ...] = ()) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    p = {"up": array(256, 1024), "down": array(1024, 256), "head": array(256, 64)}
    data = array(512, 256, spec=("x",)), array(512, 64, spec=("x",))
    return read(jax.jit(fn).trace(p, p, *data).lower(lowering_platforms=("cpu",)))


def test_a_beam_finds_soon_what_has_to_be_sharded_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either weight of an MLP alone sharded over its hidden dimension costs more than none; all are priced by hand."""
    module, clock = mlp(), count()
    pricing, requests = Pricing(module), Requests(module)
    by_hidden = {"down": Spec((("y",), ())), "up": Spec(((), ("y",)))}

    def price(*names: str) -> float:
        specs = {n: spec for n, path in enumerate(module.names) for key, spec in by_hidden.items() if key in path}
        wanted = {n: spec for n, spec in specs.items() if any(name in module.names[n] for name in names)}
        return pricing.of(requests.pinned(requests.with_results(wanted))).bytes

    both = price("up", "down")
    assert both < price() < min(price("up"), price("down"))
    monkeypatch.setattr(main, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    priced = 300  # assignments, before the time is up
    assert Search(module).points(priced)[1].price.bytes <= both


@pytest.mark.parametrize(
    ("loop", "times"),
    [
        (lambda body, x, limit: jax.lax.fori_loop(0, 7, body, x), 7),
        (lambda body, x, limit: jax.lax.scan(lambda x, _: (body(0, x), None), x, None, 5)[0], 5),
        (lambda body, x, limit: jax.lax.fori_loop(0, limit, body, x), 1),
        (lambda body, x, limit: jax.lax.fori_loop(0, limit * 2, body, x), 1),
        (lambda body, x, limit: jax.lax.while_loop(lambda x: x[0, 0] < x[1, 1], lambda x: body(0, x), x), 1),
    ],
)
def test_a_loop_runs_as_often_as_a_constant_says(loop: Any, times: int) -> None:
    """Where there is none, it counts once."""

    def fn(x: jax.Array, limit: jax.Array) -> Any:
        return loop(lambda _, x: jnp.tanh(x @ x), x, limit)

    x, limit = jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((), jnp.int32)
    found = Pricing(read(jax.jit(fn).trace(x, limit).lower(lowering_platforms=("cpu",)))).of()
    assert (found.flops, found.bytes) == (times * 2 * 8**3, 0)
