"""Captures with a run in the process of the tests: what they show is what NumPy computes, block by block."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.here import capture_here
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.case import INPUTS, PROGRAM, UNAVAILABLE
from shardscope.inspector.capture.protocol.values import Probe
from shardscope.inspector.capture.protocol.workspace import DUMP, find_propagation
from shardscope.inspector.capture.worker import modules, patches, provenance
from shardscope.inspector.capture.worker.dumped import Dump
from shardscope.inspector.capture.worker.probes import live
from shardscope.inspector.capture.worker.probes import partial as partial_sums
from shardscope.inspector.capture.worker.probes.sites import DeviceBlocks
from shardscope.inspector.capture.worker.probes.summing import summary_of
from shardscope.inspector.capture.worker.script_trial import RECORD, _Recording, _Values, _watch_shardings
from shardscope.inspector.report.elements import shard_elements

from .conftest import Captured

PLACES = list(itertools.product(range(2), range(4)))
"""Coordinates of the devices on the mesh, in the order of their ids."""


@pytest.fixture
def mesh(devices: list[Any]) -> Mesh:
    return jax.make_mesh((2, 4), ("x", "y"), devices=devices, axis_types=(AxisType.Auto,) * 2)


def on(mesh: Mesh, value: Any, *spec: Any) -> Any:
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def varying(value: Any, *axes: str) -> Any:
    return lax.pcast(value, axes, to="varying") if hasattr(lax, "pcast") else lax.pvary(value, axes)


def line_with(function: Callable[..., Any], text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def probes(capture: Capture, when: str, path_of: Callable[[Probe], bool] = lambda probe: True) -> list[Probe]:
    assert (capture.failure, [each.text for each in capture.messages]) == (None, [])
    return [each for each in capture.probes if each.when == when and path_of(each)]


def check(probe: Probe, blocks: dict[tuple[int, int], Any]) -> None:
    """Each device's elements, its place, figures of its block, and that digests are equal where bits are."""
    assert [(each.device, each.coordinates) for each in probe.shards] == list(enumerate(PLACES))
    for number, (place, shard) in enumerate(zip(PLACES, probe.shards, strict=True)):
        block = np.asarray(blocks[place])
        assert np.allclose(np.reshape(shard_elements(probe, number), block.shape), block, rtol=1e-6)
        assert (shard.minimum, shard.maximum) == pytest.approx((block.min(), block.max()))
        assert shard.mean == pytest.approx(block.mean())
        for other, another in zip(PLACES, probe.shards, strict=True):
            assert (shard.digest == another.digest) == np.array_equal(block, blocks[other])


def test_each_iteration_of_a_scan_on_each_device(mesh: Mesh, recorded: Captured) -> None:
    """The first eight and the last; a summary of what all devices have, and where they first differ."""
    ring = [(at, (at + 1) % 4) for at in range(4)]

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    def fn(x: Any) -> Any:
        def step(carry: Any, time: Any) -> Any:
            total = lax.psum(carry, "x")
            return lax.ppermute(carry, "y", ring) + varying(total, "x") * 0.25, time * 2

        return lax.scan(step, x, jnp.arange(12.0))[0]

    value = np.arange(16, dtype=np.float32).reshape(4, 4)
    capture = recorded(fn, on(mesh, value, "x", "y"), reference=True)
    states = [{(x, y): value[2 * x : 2 * x + 2, y : y + 1] for x, y in PLACES}]
    for _ in range(12):
        last = states[-1]
        total = {y: last[0, y] + last[1, y] for y in range(4)}
        states.append({(x, y): last[x, (y - 1) % 4] + total[y] * 0.25 for x, y in PLACES})

    equations = {each.path for each in probes(capture, "before")}
    sums, moves = sorted(equations, key=lambda path: [float(each) for each in path])
    inside = [each for each in capture.probes if each.path]
    assert [each.path for each in inside] == [sums] * 18 + [moves] * 18
    assert [each.when for each in inside] == (["before"] * 9 + ["after"] * 9) * 2
    for path, becomes in ((sums, False), (moves, True)):
        for when in ("before", "after"):
            found = probes(capture, when, lambda each: each.path == path)  # noqa: B023
            assert [each.iteration for each in found] == [(number,) for number in (*range(8), 11)]
            assert all(each.axes == ("x", "y") and each.loops == (path[-2],) for each in found)
            for each in found:
                held = states[each.iteration[0]]
                after = {(x, y): held[x, (y - 1) % 4] if becomes else held[0, y] + held[1, y] for x, y in PLACES}
                check(each, after if when == "after" else held)
    ((output,),) = (probes(capture, "output"),)
    check(output, states[-1])
    assert [each.part for each in output.shards] == [f"{2 * x}:{2 * x + 2}, {y}" for x, y in PLACES] or all(
        np.array_equal(eval(f"value[{each.part}]", {"value": value}).ravel(), states[0][place].ravel())
        for place, each in zip(PLACES, output.shards, strict=True)
    )
    differs = {axis.axis: axis for each in capture.compared if each.path == sums for axis in each.differs}
    assert set(differs) == {"y"}
    assert (differs["y"].iteration, differs["y"].devices) == ((0,), (0, 1))
    doubled = [each for each in capture.summaries if each.primitive == "mul" and each.shape == "float32[]"]
    assert [(each.iteration, each.projections[0]) for each in doubled] == [((n,), 2.0 * n) for n in (*range(8), 11)]
    assert capture.probed is not None
    assert capture.probed.shown == capture.probed.probed == {"all-reduce": 1, "collective-permute": 1}


def test_iterations_and_branches_that_devices_take(mesh: Mesh, recorded: Captured) -> None:
    """A while loop whose number of iterations, and a conditional whose branch, differ along one axis."""

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))
    def fn(x: Any) -> Any:
        def more(state: Any) -> Any:
            return lax.pmax(state[0, 0], "y") < 20

        def body(state: Any) -> Any:
            return lax.pmin(state, "y") * 0 + state * 2

        grown = lax.while_loop(more, body, x)
        is_first = lax.axis_index("x") == 0
        return lax.cond(is_first, lambda v: v - varying(lax.psum(v, "y"), "y"), lambda v: v, grown)

    value = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
    capture = recorded(fn, on(mesh, value, "x", "y"))
    counts = [next(n for n in itertools.count() if row.max() * 2**n >= 20) for row in value]
    assert counts == [3, 2]
    found = probes(capture, "after")
    inside = [each for each in found if each.iteration]
    for each in inside:
        (number,) = each.iteration
        for at, shard in enumerate(each.shards):
            row = shard.coordinates[0]
            numbers = value[row] * 2.0**number
            assert shard_elements(each, at) in ((numbers.max(),), (numbers.min(),))
    for row, count in enumerate(counts):  # the condition once more than the body
        ran = [each for each in inside if row in {shard.coordinates[0] for shard in each.shards}]
        assert {each.iteration[0] for each in ran} == set(range(count + 1))
        assert len(ran) == 2 * count + 1
    (total,) = (each for each in found if not each.iteration)
    assert [shard.coordinates for shard in total.shards] == [(0, y) for y in range(4)]
    assert {shard_elements(total, at) for at in range(4)} == {(float((value[0] * 8).sum()),)}


def test_summaries_are_numbers_of_numpy(mesh: Mesh, recorded: Captured) -> None:
    """The norm of the finite elements, the NaNs, the coarsest type so far; and the line in which NaNs begin."""

    @jax.jit
    def fn(x: Any, weights: Any) -> Any:
        narrow = (x @ weights).astype(jnp.bfloat16)
        wide = narrow.astype(jnp.float32) + 1

        def step(carry: Any, time: Any) -> Any:
            lower = carry - time
            return jnp.where(time > 2, jnp.sqrt(lower), lower), None

        (carry, _) = lax.scan(step, wide, jnp.arange(5.0))
        return {"loss": carry.sum(), "hidden": jnp.sin(wide)}

    x, weights = np.ones((4, 8), np.float32), np.eye(8, dtype=np.float32)
    capture = recorded(fn, on(mesh, x, "x"), on(mesh, weights, None, "y"), reference=True)
    known = {(each.primitive, each.iteration): each for each in capture.summaries}
    size, epsilon = math.sqrt(x.size), float(jnp.finfo(jnp.bfloat16).eps)
    assert known["dot_general", ()].projections[0] == pytest.approx(size)
    assert known["dot_general", ()].epsilon == np.finfo(np.float32).eps
    assert known["sin", ()].projections[0] == pytest.approx(size * math.sin(2))
    assert known["sin", ()].epsilon == epsilon
    assert known["sin", ()].shape == "float32[4, 8]"
    assert known["sin", ()].line is not None
    assert known["sin", ()].line.line == line_with(fn, "jnp.sin")
    for number, lower in enumerate([2.0, 1.0, -1.0, -4.0, math.nan]):
        found = known["sqrt", (number,)]
        is_right = lower >= 0
        assert found.nans == (0 if is_right else x.size)
        assert found.projections[0] == pytest.approx(size * math.sqrt(lower) if is_right else 0)
    (message,) = [each for each in capture.messages if "NaN begins" in each.text]
    assert message.text.startswith("NaN begins in sqrt (")
    assert ", in iteration 3 of its loop" in message.text
    assert message.location == f"{__file__}:{line_with(fn, 'jnp.sqrt')}"
    assert capture.execution is not None
    shown = {each.path: each for each in capture.execution.outputs}
    assert set(shown) == {"result['loss']", "result['hidden']"}
    assert shown["result['loss']"].non_finite == 1


SPECS = {
    "over x": P(None, unreduced={"x"}),
    "over y, of rows": P("x", unreduced={"y"}),
    "over both": P(None, unreduced={"y", "x"}),
    "done": P("y"),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_sums_that_are_left_to_be_done(spec: P, dtype: Any, devices: list[Any]) -> None:
    """Each device holds a part of its block's sum; together they are the value."""
    mesh = jax.make_mesh((2, 4), ("x", "y"), devices=devices, axis_types=(AxisType.Explicit,) * 2)
    value = np.arange(32).reshape(4, 8).astype(dtype)
    sharding = NamedSharding(mesh, spec)
    assert partial_sums.is_partial(sharding) == bool(spec.unreduced)
    array = partial_sums.placed(value, sharding) if spec.unreduced else jax.device_put(value, sharding)
    assert np.array_equal(partial_sums.whole(array), value)
    blocks = NamedSharding(mesh, P(*spec._partitions)).devices_indices_map(value.shape)
    parts = partial_sums.parts_of(array)
    assert {each.device: each.where for each in parts} == blocks
    assert partial_sums.places_on(array) == dict(enumerate(PLACES))
    copies = 8 // math.prod(mesh.shape[axis] for each in spec._partitions if each for axis in (each,))
    summed = np.zeros(value.shape)
    for each in parts:
        summed[each.where] += each.data
    assert np.array_equal(summed, value * (copies // math.prod(mesh.shape[axis] for axis in spec.unreduced or {})))


def test_arguments_are_changed_by_roundings() -> None:
    """Each float by so many units in the last place or not at all, and nothing else."""
    leaves = [jnp.linspace(1, 2, 500), jnp.arange(4), jnp.ones(300, jnp.bfloat16), 2.5, np.ones(3, np.float32)]
    inputs = live.Inputs(leaves, None, [False] * 5, False)
    wide, whole, narrow, number, host = live.nudged(inputs).leaves
    for before, after in ((leaves[0], wide), (leaves[2], narrow)):
        step = live.NUDGE * float(jnp.finfo(before.dtype).eps)
        moved = (np.asarray(after, np.float64) / np.asarray(before, np.float64) - 1) / step
        assert set(np.round(moved)) == {-1, 0, 1}
        assert after.dtype == before.dtype
    assert whole is leaves[1]
    assert number is leaves[3]
    assert host is leaves[4]


@pytest.mark.parametrize("shape", [(300, 400), (120_000,), (4, 0), ()])
def test_summaries_of_arrays(shape: tuple[int, ...]) -> None:
    """The norm, products with two vectors around zero, by which another order shows, and the number of NaNs."""
    value = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    norm, *products, nans = np.asarray(summary_of(jnp.asarray(value)))
    assert (norm, nans) == (pytest.approx(np.linalg.norm(value)), 0)
    if value.size > 1:
        ones = np.asarray(summary_of(jnp.ones(shape)))
        assert all(abs(ones[1:3]) < 3 * math.sqrt(value.size / 12))
        again = np.asarray(summary_of(jnp.asarray(value[::-1])))
        assert again[0] == pytest.approx(norm)
        assert not np.allclose(again[1:3], products, atol=1)
        assert abs(products[0] - products[1]) > 1
        value.reshape(-1)[[0, 5, 7]] = np.nan, np.inf, np.nan
        broken = np.asarray(summary_of(jnp.asarray(value)))
        assert broken[3] == 2
        assert broken[0] == pytest.approx(np.linalg.norm(value[np.isfinite(value)]))


def test_records_of_how_the_compilers_shardings_came_about(mesh: Mesh, recorded: Captured, tmp_path: Path) -> None:
    """Shardings are those that the compiler dumped; of what propagates otherwise here, nothing is recorded."""

    @jax.jit
    def fn(x: Any, weights: Any) -> Any:
        return jnp.tanh(x @ weights) * 2

    capture = recorded(fn, on(mesh, np.ones((8, 4)), "x"), on(mesh, np.ones((4, 8)), None, "y"), live=False)
    stablehlo = next(each for each in capture.stages if each.name == "stablehlo").source
    files = find_propagation(str(tmp_path / DUMP))
    assert files is not None
    hlo, before, after = (each.read_bytes() for each in files)
    texts = []
    for begin in (before, before.replace(b'{"x"}', b'{"y"}')):
        data = provenance.propagate(stablehlo.data, "origins steps", Dump(hlo, begin, after))
        with modules.context():
            texts.append(str(modules.ir.Module.parse(data).operation.get_asm(enable_debug_info=True)))
    for text in texts:
        shardings = re.findall(r"#sdy.sharding<@\w+, (\[.*?\])", text)
        assert shardings
        assert set(shardings) == set(re.findall(r"#sdy.sharding<@\w+, (\[.*?\])", after.decode()))
        assert __file__ in text
    recorded_of = [[line for line in text.splitlines() if "sharding_origins" in line] for text in texts]
    assert len(recorded_of[0]) > 3
    assert ['loc("weights")' in line for line in recorded_of[1]] == [True]


def test_a_case_has_the_blocks_and_values_of_all_parameters(mesh: Mesh, recorded: Captured, tmp_path: Path) -> None:
    """Of an argument that is not used nothing, of keys their data, of narrow types wider ones; a Ref is a result."""
    new_ref = getattr(jax, "new_ref", None) or jax.array_ref

    @jax.jit
    def fn(x: Any, unused: Any, key: Any, state: Any) -> Any:
        state[...] += x.sum()
        return {"sum": x.sum(0), "keys": jax.random.split(key)}

    x = on(mesh, np.arange(32).reshape(4, 8).astype(jnp.bfloat16), "x", "y")
    state, key = new_ref(on(mesh, jnp.zeros((), jnp.bfloat16))), jax.random.key(1)
    recorded(fn, x, 3.0, key, state, case=str(tmp_path / "case"), live=False)
    described = json.loads((tmp_path / "case" / PROGRAM).read_text())
    assert (described["devices"], described["slices"]) == (8, [[number, 0] for number in range(8)])
    with np.load(tmp_path / "case" / INPUTS) as values:
        arrays = [values[f"arr_{number}"] for number in range(3)]
    assert [each["path"] for each in described["parameters"]] == ["x", "key", "state"]
    for given, array in zip((np.asarray(x, np.float32), jax.random.key_data(key), np.zeros(())), arrays, strict=True):
        assert np.array_equal(given, array)
        assert array.dtype.kind in "fu"

    def blocks(value: jax.Array) -> list[list[list[int]]]:
        indices = value.sharding.devices_indices_map(value.shape)
        parts = [zip(indices[device], value.shape, strict=True) for device in sorted(indices, key=lambda d: d.id)]
        return [[list(part.indices(size)[:2]) for part, size in each] for each in parts]

    results = fn(x, 3.0, key, state)
    assert described["parameters"][0]["blocks"] == blocks(x)
    assert described["parameters"][2]["blocks"] == [[]] * 8
    outputs = {each["path"]: each for each in described["outputs"]}
    assert set(outputs) == {"result['keys']", "result['sum']", "result[2]"}
    assert outputs["result['sum']"] == {"path": "result['sum']", "shape": [8], "blocks": blocks(results["sum"])}
    assert outputs["result['keys']"]["blocks"] == [[[0, 2], [0, 2]]] * 8
    assert outputs["result[2]"]["shape"] == []


def test_a_case_of_one_device_or_of_a_ref_that_is_no_argument(
    mesh: Mesh, devices: list[Any], recorded: Captured, tmp_path: Path
) -> None:
    new_ref = getattr(jax, "new_ref", None) or jax.array_ref
    held = new_ref(on(mesh, jnp.zeros(8), "x"))

    @jax.jit
    def counted(x: Any) -> Any:
        held[...] += x
        return x * 2

    @jax.jit
    def doubled(x: Any) -> Any:
        return x * 2

    recorded(doubled, jax.device_put(np.ones(8), devices[3]), case=str(tmp_path / "one"), live=False)
    described = json.loads((tmp_path / "one" / PROGRAM).read_text())
    assert (described["devices"], described["slices"]) == (1, [[3, 0]])
    assert described["outputs"] == [{"path": "result", "shape": [8], "blocks": [[[0, 8]]]}]
    recorded(counted, on(mesh, np.ones(8), "x"), case=str(tmp_path / "none"), live=False)
    assert "no arguments" in (tmp_path / "none" / UNAVAILABLE).read_text()
    assert not (tmp_path / "none" / PROGRAM).exists()


def test_the_source_of_a_function_that_is_in_no_file(tmp_path: Path) -> None:
    """That of a cell of a notebook is what Python quotes; of a text that is executed there is none."""
    text, cell = b"def fn(x):\n    return x * 2\n", str(tmp_path / "cell.py")
    patches.quote(text, cell)
    for file in (cell, f"<{tmp_path.name}>"):
        names: dict[str, Any] = {"__name__": "no_module"}
        exec(compile(text, file, "exec"), names)
        capture = capture_here(names["fn"], (1.0,), {})
        assert capture.subject is not None
        assert capture.subject.script == (cell if file == cell else None)
        assert (None if capture.script_text is None else capture.script_text.data) == (text if file == cell else None)


def test_operations_in_loops_tuples_and_shard_maps_have_their_lines(
    mesh: Mesh, recorded: Captured, tmp_path: Path
) -> None:
    """In the module that the compiler dumped, which has none."""

    @jax.jit
    def fn(x: Any, w: Any) -> Any:
        x = lax.fori_loop(0, 3, lambda _, x: jnp.sin(x), x)
        x = jax.pure_callback(np.abs, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        (x, _), rows = lax.scan(lambda carry, row: ((jnp.tanh(carry[0]), carry[1] + 1), row), (x, w), w)
        x = lax.cond(x[0, 0] > 0, jnp.exp, jnp.log1p, x)
        x, order = lax.sort((x, jnp.arange(64).reshape(8, 8)), dimension=1, num_keys=1)
        x = lax.while_loop(lambda x: x.sum() < 9, jnp.cos, x)
        mapped = jax.shard_map(lambda x: jnp.cbrt(lax.psum(x, "y")), mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))
        return mapped(x), order, rows

    square = np.ones((8, 8), np.float32)
    capture = recorded(fn, on(mesh, square, "x"), on(mesh, square, None, "y"), live=False)
    stablehlo = next(each for each in capture.stages if each.name == "stablehlo").source
    files = find_propagation(str(tmp_path / DUMP))
    assert files is not None
    lines = inspect.getsource(fn).splitlines()
    first = inspect.getsourcelines(fn)[1]
    for wish in ("origins steps", "steps", ""):
        data = provenance.propagate(stablehlo.data, wish, Dump(*(each.read_bytes() for each in files)))
        with modules.context():
            module = modules.ir.Module.parse(data)
            found = {}
            for operation in modules.find(module.operation, lambda name: name.startswith("stablehlo.")):
                place = re.search(rf'"{re.escape(__file__)}":(\d+)', str(operation.location))
                found[operation.name.partition(".")[2]] = place and lines[int(place[1]) - first]
        for name, text in {
            "sine": "jnp.sin", "tanh": "jnp.tanh", "exponential": "jnp.exp", "log_plus_one": "jnp.log1p",
            "cosine": "jnp.cos", "cbrt": "jnp.cbrt", "sort": "lax.sort", "while": "lax.while_loop",
        }.items():  # fmt: skip
            assert name in found
            assert text in (found[name] or "")


def test_axes_over_which_a_script_shards(mesh: Mesh) -> None:
    """What it places by what comes of it, what else by the specs that it names."""
    rows, columns, x = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y")), np.ones((8, 4), np.float32)
    calls: list[tuple[Callable[[Any], object], set[str]]] = [
        (lambda jax: jax.device_put(x, rows), {"x"}),
        (lambda jax: jax.device_put({"a": x, "b": [x]}, NamedSharding(mesh, P())), set()),
        (lambda jax: jax.jit(jnp.sin), set()),
        (lambda jax: jax.jit(jnp.sin, in_shardings=(rows,), out_shardings=columns), {"x", "y"}),
        (lambda jax: jax.shard_map(jnp.sin, mesh=mesh, in_specs=(P(("x", "y")),), out_specs=P()), {"x", "y"}),
        (lambda jax: jax.shard_map(jnp.sin, mesh=mesh, in_specs=P(), out_specs=P("x")), set()),
        (lambda jax: jax.lax.with_sharding_constraint(x, columns), {"y"}),
        (lambda jax: jax.lax.with_sharding_constraint(x, shardings=rows), {"x"}),
    ]
    for call, axes in calls:
        own = SimpleNamespace(device_put=jax.device_put, jit=jax.jit, shard_map=jax.shard_map, tree=jax.tree)
        own.lax = SimpleNamespace(with_sharding_constraint=lax.with_sharding_constraint)
        own.sharding = SimpleNamespace()
        values = _Values()
        _watch_shardings(own, values)
        call(own)
        assert values.axes == axes


@pytest.mark.parametrize("spec", [P(), P("x"), P(("x", "y")), P("x", "y"), P(None, "y"), P(None, None, "x")])
@pytest.mark.parametrize("leading", [0, 1, 2])
def test_blocks_are_read_from_the_shard_that_has_them(spec: P, leading: int, mesh: Mesh) -> None:
    value = np.arange(8 * 4 * 2).reshape(8, 4, 2)
    blocks = DeviceBlocks(on(mesh, value, *spec), leading)
    for at in itertools.product(*map(range, value.shape[:leading])):
        assert np.array_equal(blocks[at], value[at])


def test_functions_hand_over_what_they_return() -> None:
    """What returns nothing hands over nothing."""
    source = """
def half(x):
    if x == 0:
        return
    def inner(y):
        return y / 2
    return inner(x)
async def waits():
    return 1
half(0)
three = half(6)
"""
    values = _Values()
    tree = ast.fix_missing_locations(_Recording().visit(ast.parse(source)))
    exec(compile(tree, "script.py", "exec"), {RECORD: values.record})
    shown = {path: numbers[2][0][0] for path, numbers in values.kept.items()}
    assert shown == {
        "half#0 x": 6,
        "half#0 return": 3,
        "half.inner#0 y": 6,
        "half.inner#0 return": 3,
        "#0 three": 3,
    }
