"""Inferred variance is that of the values themselves: each body runs on four devices that `vmap` stands for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table
from shardscope.inspector.ir.jaxpr import Variable, read_program
from shardscope.inspector.ir.jaxpr_text import JaxprText, print_jaxpr
from shardscope.inspector.variance.held import axes_of
from shardscope.inspector.variance.inference import infer
from shardscope.inspector.variance.variables import variance_of
from shardscope.parsers.source import Source

MESH = AbstractMesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
SPECS = P("x"), P("y"), P(("x", "y")), P()
"""Of the arguments, all of which a body gets as two numbers."""

Body = Callable[[Any, Any, Any, Any], tuple[Any, ...]]


def carried(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Each value takes that of the one before a step later."""
    return lax.scan(lambda held, _: ((held[1], held[2], held[2] + b, held[3]), held[3]), (d, d, d, d), None, length=5)


def stacked(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.scan(lambda held, row: (held + row[1], (row[0] * 2, held, a + row[1])), d[0], (b, d))


def counted(a: Any, b: Any, c: Any, d: Any) -> Any:
    """As many steps as one number says; the others step along."""
    return lax.while_loop(
        lambda held: held[0] < 6 * a[0], lambda held: (held[0] + 1, held[1] * 2, held[2]), (0.0, d, b)
    )


def counted_alike(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.while_loop(
        lambda held: held[0] + d[1] < 4, lambda held: (held[0] + 1, held[1] * a, held[1], held[3]), (0.0, d, d, b)
    )


def chosen(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.cond(a[0] > 0.5, lambda v, w: (v, w * 2, v), lambda v, w: (v + 1, w, w), d, b)


def chosen_alike(a: Any, b: Any, c: Any, d: Any) -> Any:
    return lax.switch(jnp.int32(d[0] * 2.5), [lambda v, w: (v, d), lambda v, w: (d, w), lambda v, w: (v, d)], a, b)


def of_calls(a: Any, b: Any, c: Any, d: Any) -> Any:
    called = jax.jit(lambda v, w: (v * 2, w + v, lax.psum(w, "x")))
    return *called(a, d), *called(d, c), jax.nn.relu(b), jax.checkpoint(jnp.sin)(d)


BODIES: dict[str, Body] = {
    "nothing": lambda a, b, c, d: (a + 0, b * 2, c + 1, d * 3, a * b, b + d, c * a),
    "psum": lambda a, b, c, d: tuple(lax.psum(v, axes) for v, axes in product((a, b, c), ("x", "y", ("x", "y")))),
    "pmax": lambda a, b, c, d: (lax.pmax(a, "x"), lax.pmin(c, "y"), lax.pmean(c, ("y", "x"))),
    "all_gather": lambda a, b, c, d: (lax.all_gather(a, "x"), lax.all_gather(c, "y", tiled=True)),
    "ppermute": lambda a, b, c, d: (lax.ppermute(a, "x", [(0, 1), (1, 0)]), lax.ppermute(c, "y", [(1, 0), (0, 1)])),
    "psum_scatter": lambda a, b, c, d: (lax.psum_scatter(a, "x"), lax.psum_scatter(c, "y", tiled=True)),
    "all_to_all": lambda a, b, c, d: (lax.all_to_all(a, "x", 0, 0), lax.all_to_all(c, "y", 0, 0, tiled=True)),
    "axis_index": lambda a, b, c, d: (lax.axis_index("x"), d[lax.axis_index("y")], d + lax.axis_index("x")),
    "several at once": lambda a, b, c, d: lax.psum((a, c), "x"),
    "carried": lambda a, b, c, d: (*(out := carried(a, b, c, d))[0], out[1]),
    "stacked": lambda a, b, c, d: (lambda last, rows: (last, *rows))(*stacked(a, b, c, d)),
    "counted": counted,
    "counted alike": counted_alike,
    "chosen": chosen,
    "chosen alike": chosen_alike,
    "calls": of_calls,
}


def traced(body: Body, checked: bool) -> JaxprText:
    """A body in a shard_map, whose results may all differ."""

    def mapped(*arguments: Any) -> Any:
        return [jnp.expand_dims(out, 0) for out in jax.tree.leaves(body(*arguments))]

    function = jax.shard_map(mapped, mesh=MESH, in_specs=SPECS, out_specs=P(("x", "y")), check_vma=checked)
    sizes = [2 * (2 if spec and isinstance(spec[0], str) else 4 if spec else 1) for spec in SPECS]
    table = Table(jax.make_jaxpr(function)(*(jnp.ones(size) for size in sizes)))
    return print_jaxpr(read_program(Source("jaxpr", table.encode())))


def differing(body: Body) -> list[set[str]]:
    """The axes along which each result differs in one of two runs, which take other branches."""
    known = np.random.default_rng(0).uniform(0.1, 0.9, (2, 2, 4, 2)).astype(np.float32)
    known[:, 0, 0, 0] = 0.3, 0.8
    mapped = jax.vmap(lambda *v: jax.tree.leaves(body(*v)), axis_name="y", axis_size=2)
    along_both = jax.jit(jax.vmap(mapped, axis_name="x", axis_size=2))
    found: list[set[str]] = []
    for known[0, 0, 3, 0] in (0.2, 0.6):
        arguments = known[:, :1, 0], known[:1, :, 1], known[:, :, 2], known[:1, :1, 3]
        results = along_both(*(np.broadcast_to(each, (2, 2, 2)) for each in arguments))
        found = found or [set() for _ in results]
        for axes, each in zip(found, map(np.asarray, results), strict=True):
            axes |= {"x"} if not np.allclose(*each) else set()
            axes |= {"y"} if not np.allclose(*each.swapaxes(0, 1)) else set()
    return found


@pytest.mark.parametrize("name", BODIES)
def test_what_may_differ_does(name: str) -> None:
    text = traced(BODIES[name], checked=False)
    ((_, body),) = next(each.equation.bodies for each in text.equations if each.equation.shard_map)
    results = infer(text, "values").results
    made = {
        output.name: results[place.id][number]
        for place in text.equations
        if place.jaxpr == body
        for number, output in enumerate(place.equation.outputs)
    }
    found = [{*axes_of(made[output], "varying")} for output in text.program.jaxprs[body].outputs]
    assert found == differing(BODIES[name])


def cast(a: Any, b: Any, c: Any, d: Any) -> Any:
    one, both = lax.pcast(d, "x", to="reduced"), lax.pcast(d, ("x", "y"), to="varying")
    sums = lax.pcast(a, "x", to="unreduced"), lax.pcast(jnp.sin(one) * a * b, "x", to="unreduced")
    return *(lax.psum(each, "x") for each in sums), one * a * b, jax.jit(jnp.sin)(both)


@pytest.mark.parametrize(
    "name", ["nothing", "several at once", "ppermute", "all_to_all", "axis_index", "calls", "cast"]
)
def test_types_are_those_of_jax(name: str) -> None:
    """Of each value, as the type says; and where an axis that an operand has is not in the result, it has left."""
    text = traced(BODIES.get(name, cast), checked=True)
    outputs = {each.name: each for place in text.equations for each in place.equation.outputs}
    types = {each.name: each for jaxpr in text.program.jaxprs for each in jaxpr.inputs} | outputs
    inferred = infer(text, "types").results
    found = variance_of(text)
    assert found
    for each in found:
        made, equation = outputs[each.value], next(p.equation for p in text.equations if p.id == each.equation)
        typed = made.varying, made.unreduced, made.reduced
        assert (each.varying, each.unreduced, each.reduced) == typed
        value = inferred[each.equation][equation.outputs.index(made)]
        assert (axes_of(value, "varying"), axes_of(value, "unreduced"), axes_of(value, "reduced")) == typed
        held = axes_that_differ(made)
        assert {entry.axis for entry in each.entered} == held | {*each.hidden}
        assert {*each.left} == set().union(
            *(axes_that_differ(types[name]) for name in equation.inputs if name in types)
        ) - held


def axes_that_differ(value: Variable) -> set[str]:
    return {*(value.varying or ()), *(value.unreduced or ()), *(value.reduced or ())}
