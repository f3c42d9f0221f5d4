"""The table of collectives says what JAX does: each is traced, lowered and transposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax._src.lax import parallel
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.model import Stage
from shardscope.inspector.catalog.collective import SLICE, CollectiveKind, CollectiveRule
from shardscope.inspector.catalog.collectives import KINDS
from shardscope.inspector.catalog.spellings import (
    FUNCTIONS,
    HLO_OPCODES,
    PRIMITIVES,
    STABLEHLO_OPS,
    TABLE,
    entries_named,
    rule_of,
)
from shardscope.inspector.collectives.context import AnalysisContext
from shardscope.inspector.collectives.hlo import hlo_collectives
from shardscope.inspector.collectives.stage import collectives_in_context
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.ir.types import ArrayType
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

SIZE = 4
HALVES = """\
HloModule m, num_partitions=4

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  c = (f32[8]{{0}}, f32[8]{{0}}) {opcode}-start(p), channel_id=1, replica_groups={{{{0,1,2,3}}}}
  ROOT d = f32[8]{{0}} {opcode}-done(c)
}}
"""
WHOLE = """\
HloModule m, num_partitions=4

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT c = f32[8]{{0}} {opcode}(p), channel_id=1, replica_groups={{{{0,1,2,3}}}}
}}
"""
MESH = AbstractMesh((SIZE,), ("i",), axis_types=(AxisType.Explicit,))
RING = [(k, (k + 1) % SIZE) for k in range(SIZE)]

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="before 0.10, JAX types no unreduced values")

Function = Callable[[Any], Any]


def rules_named(name: str) -> tuple[CollectiveRule, ...]:
    return tuple(entry for entry in entries_named(name) if isinstance(entry, CollectiveRule))


def cast(x: Any, to: str) -> Any:
    return lax.pcast(x, "i", to=to)


def ragged(x: Any) -> Any:
    one = cast(jnp.ones(SIZE, jnp.int32), "varying")
    offsets = cast(jnp.arange(SIZE, dtype=jnp.int32), "varying")
    return lax.ragged_all_to_all(x, jnp.zeros_like(x), offsets, one, offsets, one, axis_name="i")


LINEAR: dict[str, tuple[Function, tuple[str, ...]]] = {
    "psum": (lambda x: cast(lax.psum(x, "i"), "varying"), ("psum_invariant", "pvary")),
    "all_gather": (lambda x: lax.all_gather(x, "i", tiled=True), ("all_gather",)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i", tiled=True), ("reduce_scatter",)),
    "all_to_all": (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), ("all_to_all",)),
    "ppermute": (lambda x: lax.ppermute(x, "i", RING), ("ppermute",)),
    "to unreduced": (
        lambda x: cast(lax.psum(cast(x, "unreduced"), "i"), "varying"),
        ("vary_unreduced_cast", "unreduced_psum", "pvary"),
    ),
    "to reduced": (
        lambda x: cast(cast(lax.psum(x, "i"), "reduced"), "varying"),
        ("psum_invariant", "preduced", "reduced_vary_cast"),
    ),
    "gather reduced": (
        lambda x: cast(lax.all_gather(x, "i", tiled=True, to="reduced"), "varying"),
        ("all_gather_reduced", "reduced_vary_cast"),
    ),
    "scatter unreduced": (
        lambda x: lax.psum_scatter(cast(x, "unreduced"), "i", tiled=True),
        ("vary_unreduced_cast", "unreduced_reduce_scatter"),
    ),
}
"""Functions of a varying value that give a varying one, and the primitives of the table that they are made of."""

OTHERS: dict[str, Function] = {
    "pmax": lambda x: cast(lax.pmax(x, "i"), "varying"),
    "pmin": lambda x: cast(lax.pmin(x, "i"), "varying"),
    "axis_index": lambda x: lax.axis_index("i") * x,
    "ragged_all_to_all": ragged,
    "pbroadcast": lambda x: lax.pbroadcast(x, "i", 0),
    "all_gather_invariant": lambda x: cast(lax.all_gather(x, "i", tiled=True, to="invarying"), "varying"),
}
"""What is not linear, or does not transpose to a primitive of the table."""


def traced(function: Function, check: bool = True) -> Any:
    argument = jax.ShapeDtypeStruct((SIZE * SIZE,), jnp.float32, sharding=jax.NamedSharding(MESH, P("i")))
    mapped = jax.shard_map(function, mesh=MESH, in_specs=P("i"), out_specs=P("i"), check_vma=check)
    return jax.jit(mapped).trace(argument)


def equations(jaxpr: Any) -> Iterator[Any]:
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for value in equation.params.values():
            for item in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(item, "eqns") or hasattr(item, "jaxpr"):
                    yield from equations(item)


def of_the_table(traced: Any) -> list[tuple[CollectiveRule, Any]]:
    found = ((rule_of(equation.primitive.name), equation) for equation in equations(traced.jaxpr))
    return [(rule, equation) for rule, equation in found if rule is not None]


def transposed(function: Function) -> Function:
    """Forward and backward: the cotangent has the result's type, which is varying."""

    def both(x: Any) -> Any:
        result, pull_back = jax.vjp(function, x)
        return pull_back(result)[0]

    return both


def state(variable: Any) -> str:
    type = variable.aval.manual_axis_type
    return next((name for name in ("varying", "unreduced", "reduced") if "i" in getattr(type, name)), "invariant")


def lowered_kinds(traced: Any) -> list[str]:
    text = traced.lower(lowering_platforms=("cpu",)).as_text()
    words = (word.strip('"') for line in text.splitlines() for word in line.replace("(", " ").split())
    return [STABLEHLO_OPS[word] for word in words if word in STABLEHLO_OPS]


@pytest.mark.parametrize("name", LINEAR)
def test_linear(name: str) -> None:
    function, made_of = LINEAR[name]
    assert [rule.primitive for rule, _ in of_the_table(traced(function))] == list(made_of)
    found = of_the_table(traced(transposed(function)))
    # x + y == t(t(x + y)), so what the backward pass adds is the table's transposes in reverse order.
    forward, backward = found[: len(made_of)], found[len(made_of) :]
    assert [rule.primitive for rule, _ in backward] == [rule.transpose for rule, _ in reversed(forward)]
    for rule, equation in found:
        assert (state(equation.invars[0]), state(equation.outvars[0])) == (rule.takes, rule.gives), rule.primitive


@pytest.mark.parametrize(
    "name", [*LINEAR, *(name for name in OTHERS if name not in ("pbroadcast", "ragged_all_to_all"))]
)
def test_lowering(name: str) -> None:
    function = OTHERS[name] if name in OTHERS else LINEAR[name][0]
    program = traced(function)
    assert lowered_kinds(program) == [rule.lowers_to for rule, _ in of_the_table(program) if rule.lowers_to]


@pytest.mark.parametrize("name", OTHERS)
def test_types_of_the_others(name: str) -> None:
    (found,) = [(rule, e) for rule, e in of_the_table(traced(OTHERS[name])) if rule.primitive == name]
    rule, equation = found
    assert state(equation.outvars[0]) == rule.gives
    assert rule.takes is None if not equation.invars else state(equation.invars[0]) == rule.takes


@pytest.mark.parametrize("name", ["pmax", "pmin"])
def test_no_transpose(name: str) -> None:
    (rule,) = rules_named(name)
    assert rule.transpose is None
    with pytest.raises(NotImplementedError):
        traced(lambda x: jax.linear_transpose(OTHERS[name], x)(x)[0])


def test_transposes_of_the_others() -> None:
    def backward(function: Function, name: str) -> list[str]:
        primitives = [equation.primitive.name for equation in equations(traced(function).jaxpr)]
        return primitives[primitives.index(name) + 1 :]

    gathered = backward(transposed(OTHERS["all_gather_invariant"]), "all_gather_invariant")
    assert SLICE in gathered
    assert not {"all_gather", "reduce_scatter"} & set(gathered)
    assert "ragged_all_to_all" in backward(transposed(ragged), "ragged_all_to_all")
    # JAX's rule for pbroadcast takes scalars only.
    scalar = backward(lambda x: transposed(OTHERS["pbroadcast"])(jnp.sum(x)) * x, "pbroadcast")
    assert any(name.startswith("psum") for name in scalar)
    assert rules_named("pbroadcast")[0].transpose == "psum"


def test_unchecked() -> None:
    program = traced(transposed(lambda x: lax.psum(x, "i")), check=False)
    assert [rule.primitive for rule, _ in of_the_table(program)] == ["psum", "psum"]
    (rule,) = (rule for rule in rules_named("psum") if rule.primitive == "psum")
    assert rule.transpose == "psum"


def test_each_is_tried() -> None:
    tried = {primitive for _, made_of in LINEAR.values() for primitive in made_of} | set(OTHERS) | {"psum"}
    assert tried == {rule.primitive for rule in TABLE}


def test_everything_has_a_name() -> None:
    assert all(rules_named(name) for name in (*FUNCTIONS, *PRIMITIVES))
    assert rules_named("jax.lax.psum") == rules_named("psum")
    assert {rule.primitive for rule in rules_named("psum")} == {"psum", "psum_invariant", "unreduced_psum"}
    assert not rules_named("add")


def test_functions_and_operations_exist() -> None:
    """As JAX and the StableHLO dialect of jaxlib have them; `pvary` is in older ones only."""
    assert {name for name in FUNCTIONS if not hasattr(lax, name)} <= {"pvary"}
    with mlir.make_ir_context() as context:
        assert not [name for name in STABLEHLO_OPS if not context.is_registered_operation(name)]


def test_primitives_of_all_versions() -> None:
    """Every primitive that JAX has under its lax functions has a rule, but for the halves that only synchronize."""
    primitives = {p.name for p in vars(parallel).values() if isinstance(p, Primitive)}
    unknown = {name for name in primitives if rule_of(name) is None}
    assert {name for name in unknown if not name.endswith("_done")} <= {"psend", "precv"}


def test_each_opcode_is_listed_from_text() -> None:
    """Each kind of the catalogue is found in HLO text, whole and in halves, whatever its name."""
    for opcode, kind in HLO_OPCODES.items():
        for text in (WHOLE.format(opcode=opcode), HALVES.format(opcode=opcode)):
            (found,) = hlo_collectives("hlo", parse_module(Source("m", text.encode())), AnalysisContext((), 4))
            assert (found.kind, found.name) == (kind, "c"), text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_bytes_are_those_of_an_optimal_algorithm(kind: CollectiveKind) -> None:
    """Counted in a simulation: devices pass on blocks until each has what the kind gives it."""
    count, block = 4, 12
    if kind.pattern == "pairs":
        assert kind.wire_bytes(count, block, block) == block
        return
    whole = count * block
    around = (count - 1) * block  # each block but one passes each device on its way round the ring
    # The blocks of a ragged one may all be for one other device.
    sent = {"all-reduce": 2 * around, "collective-broadcast": whole, "ragged-all-to-all": whole}.get(kind.name, around)
    operand = block if kind.sides == "gathered" else whole
    result = block if kind.sides == "scattered" else whole
    assert kind.wire_bytes(count, operand, result) == sent
    assert kind.wire_bytes(1, operand, result) == 0


def test_a_custom_call_is_listed_from_stablehlo() -> None:
    """As JAX lowers it: the groups are in its configuration, and only its first operand is sent."""
    text = traced(ragged, check=False).lower(lowering_platforms=("cpu",)).as_text()
    stage = ParsedStage(Stage("stablehlo", "mlir", Source("m", text.encode())))
    (found,) = collectives_in_context(stage, AnalysisContext((), SIZE))
    assert (found.kind, found.groups) == ("ragged-all-to-all", ((0, 1, 2, 3),))
    four = (ArrayType("f32", (4,)),)
    assert (found.operand_types, found.result_types, found.wire_bytes) == (four, four, 16)
