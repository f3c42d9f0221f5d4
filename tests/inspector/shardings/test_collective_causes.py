"""The causes of inserted collectives: the change that they suggest has to do away with the collective."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.why_lines import cause_line, remedy_line
from shardscope.inspector.report import Collective, CollectiveCause, Report
from shardscope.inspector.shardings.collective_causes import causes_of
from shardscope.inspector.shardings.explained import why_axes
from shardscope.parsers.sharding_syntax.mesh import AxisRef

from tests.sweeps import sampled

PROGRAM = Path(__file__).with_name("transformer_step.py")
SPECS = {
    "embed": ["model", "data"],
    "wqkv": ["data", "model"],
    "wo": ["model", "data"],
    "w1": ["data", "model"],
    "w2": ["model", "data"],
}

Specs = dict[str, list[str | None]]
Found = tuple[Collective, CollectiveCause]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Specs], Report]:
    """The report of the step with given specs."""
    known: dict[str, Report] = {}

    def report(specs: Specs) -> Report:
        text = re.sub(r"SPECS = \{.*?\n\}", f"SPECS = {specs!r}", PROGRAM.read_text(), count=1, flags=re.DOTALL)
        key = json.dumps(specs)
        if key not in known:
            script = tmp_path_factory.mktemp("step") / "step.py"
            script.write_text(text)
            *_, captured = capture(Request(f"{script}:step", live=False))
            assert captured.complete, captured.failure
            known[key] = inspect(captured)
        return known[key]

    return report


def inserted(report: Report) -> list[Found]:
    return [
        (collective, cause)
        for collective in report.collectives
        if collective.stage == "hlo" and collective.origin != "user"
        for cause in causes_of(report.program, collective)
    ]


def like(report: Report, kind: str, axis: str, operation: str, direction: str, function: str) -> list[Found]:
    return [
        (collective, cause)
        for collective, cause in inserted(report)
        if (collective.kind, collective.axes, cause.primitive) == (kind, (AxisRef(axis),), operation)
        and collective.direction.startswith(direction)
        and any(function in frame.function for frame in cause.place.stack)
    ]


def without(report: Report, cause: CollectiveCause, specs: Specs) -> Specs:
    """The specs without the axes that the cause says to come from them."""
    changed = {name: list(spec) for name, spec in specs.items()}
    for why in why_axes(report.program, cause.origins):
        path = re.fullmatch(r"argument params(?:\['layers'\]\[\d\])?\['(\w+)'\]", str(why.origin))
        assert path is not None, why.origin
        dim = why.root.dim
        assert changed[path[1]][dim] in (str(why.axis), None)
        changed[path[1]][dim] = None
    return changed


def test_every_inserted_collective_has_a_cause(compiled: Callable[..., Report]) -> None:
    report = compiled(SPECS)
    collectives = [c for c in report.collectives if c.stage == "hlo"]
    assert len(collectives) > 20
    effects = Counter(cause.effect for _, cause in inserted(report))
    assert effects["own"] <= effects.total() // 20
    for collective in collectives:
        assert collective.origin == "partitioner"
        found = causes_of(report.program, collective)
        assert found, collective.name
        for cause in found:
            assert cause.confidence in ("exact", "name")
            assert cause.place.frame is not None
            assert cause.origins
            assert cause_line(cause, report)
            assert remedy_line(cause, report)


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 communicates otherwise for it")
@pytest.mark.parametrize(
    ("kind", "axis", "operation", "direction", "function", "effect", "rounds"),
    sampled(
        [
            # FSDP's weights are gathered for the products.
            ("all-gather", "data", "dot_general", "", "attention", "reshard", 1),
            # q, k and v do not end where the shards of their product do. Without wqkv's axis that of wo comes there.
            ("collective-permute", "model", "split", "forward", "attention", "move", 2),
            # Tensor parallelism adds up what the rows of a weight give.
            ("all-reduce", "model", "dot_general", "forward", "mlp", "sum", 1),
            # The gradients of q, k and v are put together across the shards.
            ("all-to-all", "model", "concatenate", "backward", "attention", "move", 1),
        ],
        3,
        2,
    ),
)
def test_the_suggested_change_removes_it(
    kind: str,
    axis: str,
    operation: str,
    direction: str,
    function: str,
    effect: str,
    rounds: int,
    compiled: Callable[..., Report],
) -> None:
    specs: Specs = {name: list(spec) for name, spec in SPECS.items()}
    report = compiled(specs)
    found = like(report, kind, axis, operation, direction, function)
    assert found, "the collective is not there to begin with"
    for _ in range(rounds):
        assert {cause.effect for _, cause in found} == {effect}
        for _, cause in found:
            assert not cause.needed
            specs = without(report, cause, specs)
        report = compiled(specs)
        found = like(report, kind, axis, operation, direction, function)
    assert not found


def test_gradients_of_weights_must_be_summed(compiled: Callable[..., Report]) -> None:
    """One for each weight: four in each of two layers, and the table's from its use as the last layer."""
    report = compiled(SPECS)
    needed = [(collective, cause) for collective, cause in inserted(report) if cause.needed]
    assert len(needed) == 2 * 4 + 1
    for collective, cause in needed:
        assert (cause.effect, collective.kind, collective.axes) == ("sum", "all-reduce", (AxisRef("data"),))
        assert cause.rule == "kli,klj->ij"
        assert "to be summed" in remedy_line(cause, report)
    # Whatever the weights are cut along, the sums over the batch stay; the table has one for its other use, too.
    whole = compiled({name: [None, None] for name in SPECS})
    assert sum(cause.needed for _, cause in inserted(whole)) == 2 * 4 + 2


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="XLA of JAX 0.7 communicates otherwise for it")
def test_a_reshard_from_and_to(compiled: Callable[..., Report]) -> None:
    report = compiled(SPECS)
    (first, *_), axis = like(report, "all-gather", "data", "dot_general", "", "attention"), "data"
    collective, cause = first
    assert (str(cause.before), str(cause.after)) == ("P('data', 'model')", "P(None, 'model')")
    assert cause.moved is not None
    assert (cause.moved.is_operand, cause.moved.dim) == (True, 0)
    assert re.fullmatch(r"params\['layers'\].*\['wqkv'\]", cause.moved.value.name)
    # The batch of the other operand is cut along the same axis, because of the constraint.
    assert {str(why.origin) for why in why_axes(report.program, cause.against)} == {"with_sharding_constraint"}
    assert {str(each.axis) for each in cause.against} == {axis}
    assert list(map(str, collective.operand_types)) == ["f32[8,48]"]


def test_by_name_where_there_are_no_numbers(compiled: Callable[..., Report]) -> None:
    """A dump folder, or a JAX whose operations cannot be numbered: the operation is found by name and line."""
    report = compiled(SPECS)
    bare = tuple(replace(stage, tags=b"") for stage in report.capture.stages)
    again = inspect(replace(report.capture, stages=bare))
    confidences = {cause.confidence for _, cause in inserted(again)}
    assert confidences <= {"name", "shape"}
    assert "name" in confidences


def test_an_operation_that_a_collective_does_not_touch_is_no_cause(compiled: Callable[..., Report]) -> None:
    """Gathers of the two layers' weights with each other's numbers: a product takes the weight of one of them."""
    report = compiled(SPECS)
    gathers = [each for each in report.collectives if (each.stage, each.kind) == ("hlo", "all-gather")]
    tried = 0
    for one, other in itertools.permutations(gathers, 2):
        weights = [re.search(r"\['layers'\]\[(\d)\]", each.argument or "") for each in (one, other)]
        if None in weights or len({weight[1] for weight in weights if weight}) < 2:
            continue
        mistaken = replace(one, span=other.span, op_name=other.op_name, source=other.source)
        tried += 1
        assert causes_of(report.program, other)
        assert not causes_of(report.program, mistaken), (one.argument, other.argument)
    assert tried >= 4


TWO_DIMENSIONS = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
def step(p, x):
    def loss(p):
        h = jnp.einsum("bte,ehd->bthd", x * p["scale"], p["in"])
        return jnp.sum(jnp.square(jnp.einsum("bthd,hde->bte", jnp.tanh(h), p["out"]) * p["scale"]))
    return jax.grad(loss)(p)

def step_inputs():
    put = lambda shape, *s: jax.device_put(jnp.ones(shape), NamedSharding(mesh, P(*s)))
    p = {"scale": put((32,), "model"), "in": put((32, 4, 8), None, "model"), "out": put((4, 8, 32), None, "model")}
    return p, put((4, 6, 32), "batch")
"""


def test_an_axis_that_two_other_dimensions_have_is_needed_in_one(tmp_path: Path) -> None:
    """The weight is sharded over the heads, the activation over the width: no value can be over both."""
    script = tmp_path / "program.py"
    script.write_text(TWO_DIMENSIONS)
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    exchanges = [each for each in report.collectives if (each.stage, each.kind) == ("hlo", "all-to-all")]
    assert exchanges
    wanted = [str(cause.after) for each in exchanges for cause in causes_of(report.program, each)]
    assert wanted
    assert all(spec.count("'model'") <= 1 for spec in wanted)


ARGMAX = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("y",), axis_types=(AxisType.Auto,))
place = lambda *spec: jax.device_put(jnp.ones((8, 16)), NamedSharding(mesh, P(*spec)))
step = jax.jit(lambda logits, whole: (jnp.argmax(logits, -1), jnp.argmin(whole, -1)))
step_inputs = (place(None, "y"), place("y", None))
"""


def test_what_is_gathered_to_find_the_largest_is_reduced(tmp_path: Path) -> None:
    """The other one is found with the dimension unsharded, as the remedy says: nothing is gathered for it."""
    script = tmp_path / "argmax.py"
    script.write_text(ARGMAX)
    *_, final = capture(Request(f"{script}:step", live=False))
    report = inspect(final)
    found = inserted(report)
    assert {(each.kind, cause.effect, str(cause.moved)) for each, cause in found} == {
        ("all-gather", "sum", "dim 1 of operand logits")
    }
    assert all("reduces over a sharded dimension: dim 1 of operand logits" in cause_line(c, report) for _, c in found)


ONE_OF_TWO = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
def fn(x, y):
    x, y = (jax.lax.with_sharding_constraint(each, NamedSharding(mesh, P(("data", "model")))) for each in (x, y))
    return jax.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("data"))), jnp.sum(y, axis=0)

inputs = (jnp.ones((8, 4)), jnp.ones((8, 4)))
"""


def test_origins_are_those_of_the_axes_that_communicate(tmp_path: Path) -> None:
    """Of a dimension that two axes shard, a gather over one of them is for that axis."""
    script = tmp_path / "script.py"
    script.write_text(ONE_OF_TWO)
    *_, captured = capture(Request(f"{script}:fn", live=False))
    found = inserted(inspect(captured))
    seen = set()
    for collective, cause in found:
        axes = {axis.name for axis in collective.axes or ()}
        assert {each.axis.name for each in cause.origins} == axes, (collective.kind, cause)
        seen.add((collective.kind, frozenset(axes)))
    assert ("all-gather", frozenset({"model"})) in seen
    assert ("all-reduce", frozenset({"data", "model"})) in seen


LOOKUP = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
def fn(table, ids):
    return jax.lax.with_sharding_constraint(table[ids], NamedSharding(mesh, P("data", None, "model")))

def like(dtype, spec, *shape):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))

inputs = (like(jnp.float32, P("model", "data"), 64, 64), like(jnp.int32, P("data"), 16, 32))
"""


def test_what_a_collective_moves_has_its_dtype(tmp_path: Path) -> None:
    """The table goes into the partitioned lookup as it is: indices are gathered, and what is looked up is resharded."""
    script = tmp_path / "script.py"
    script.write_text(LOOKUP)
    *_, captured = capture(Request(f"{script}:fn", live=False))
    partitioned = captured.stage("hlo-spmd")
    assert partitioned is not None
    entry = pytest.importorskip("jaxlib._hlo").hlo_module_from_text(partitioned.source.text()).computations()[-1]
    (lookup,) = (each for each in entry.instructions() if " gather(" in each.to_string())
    table, indices = lookup.operands()
    assert " parameter(" in table.to_string()
    assert " parameter(" not in indices.to_string()
    found = [each for each in inserted(inspect(captured)) if each[0].kind != "all-reduce"]
    assert {collective.operand_types[0].dtype for collective, _ in found} == {"f32", "i32"}
    for collective, cause in found:
        assert "table" not in str(cause.moved)
        if collective.operand_types[0].dtype == "i32":
            assert cause.effect == "own" or (cause.effect, str(cause.after)) == ("reshard", "P(None, None, None)")
        else:
            assert "gather" in str(cause.moved)


BATCHED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
def fn(x):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", None, "model")))
    return jax.lax.with_sharding_constraint(x.sum(0), NamedSharding(mesh, P(None, "data")))

inputs = (jax.ShapeDtypeStruct((16, 32, 64), jnp.float32),)
"""


def test_a_result_that_is_permuted_is_the_one_that_moves(tmp_path: Path) -> None:
    """The sum is computed as its operand is sharded: the permutations are of as many bytes as its result."""
    script = tmp_path / "script.py"
    script.write_text(BATCHED)
    *_, captured = capture(Request(f"{script}:fn", live=False))
    found = [each for each in inserted(inspect(captured)) if each[0].kind == "collective-permute"]
    assert found
    for collective, cause in found:
        assert math.prod(collective.operand_types[0].shape or ()) < 16 * 32 * 64 // 8
        assert cause.moved is not None
        assert (cause.moved.is_operand, str(cause.before), str(cause.after)) in {
            (False, "P(None, 'model')", "P(None, 'data')"),
            (True, "P(None, 'model')", "P(None, 'data')"),
        }


ADDED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

@jax.jit
def fn(a, b):
    return a + b

def like(spec):
    return jax.ShapeDtypeStruct((4, 4), jnp.int32, sharding=NamedSharding(mesh, spec))

rows_first = (like(P("x", None)), like(P(None, "x")))
columns_first = (like(P(None, "x")), like(P("x", None)))
"""


@pytest.mark.parametrize("inputs", ["rows_first", "columns_first"])
def test_the_operand_that_moves_is_not_the_one_that_is_added_as_it_is(tmp_path: Path, inputs: str) -> None:
    """The operand of the partitioned sum that is a parameter stays; the exchange is for the other one."""
    script = tmp_path / "script.py"
    script.write_text(ADDED)
    *_, captured = capture(Request(f"{script}:fn", live=False, inputs=inputs))
    partitioned = captured.stage("hlo-spmd")
    assert partitioned is not None
    entry = pytest.importorskip("jaxlib._hlo").hlo_module_from_text(partitioned.source.text()).computations()[-1]
    (added,) = (each for each in entry.instructions() if " add(" in each.to_string())
    stays = [" parameter(" in each.to_string() for each in added.operands()]
    assert sum(stays) == 1
    ((_, cause),) = inserted(inspect(captured))
    assert cause.moved is not None
    assert cause.moved.of == f"operand {'b' if stays[0] else 'a'}"


MAPPED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

def loss(weights, batch):
    return (jax.vmap(lambda x: jnp.tanh(weights["w"] @ x + weights["b"]))(batch) ** 2).mean()

fn = jax.jit(jax.grad(loss))
inputs = (
    {"w": jax.ShapeDtypeStruct((4, 4), jnp.float32), "b": jax.ShapeDtypeStruct((4,), jnp.float32)},
    jax.ShapeDtypeStruct((16, 4), jnp.float32, sharding=NamedSharding(mesh, P("x"))),
)
"""


def test_the_gradient_of_a_bias_in_a_vmap_must_be_summed(tmp_path: Path) -> None:
    """Each sum of the partitioner is a result: XLA's text returns as many all-reduces as there are weights."""
    script = tmp_path / "script.py"
    script.write_text(MAPPED)
    *_, captured = capture(Request(f"{script}:fn", live=False))
    partitioned = captured.stage("hlo-spmd")
    assert partitioned is not None
    assert len(re.findall(r" all-reduce\(", partitioned.source.text())) == len(captured.outputs) == 2
    causes = [cause for _, cause in inserted(inspect(captured))]
    assert len(causes) == 2
    assert all(cause.needed for cause in causes)
