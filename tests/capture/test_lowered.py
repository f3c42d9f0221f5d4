"""Requests that are read from lowered modules and changed there, in this process, on abstract meshes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardscope.inspector.capture.worker import modules
from shardscope.inspector.capture.worker.requests.lowered import Change, Lowered
from shardscope.inspector.capture.worker.requests.spec import Spec
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
