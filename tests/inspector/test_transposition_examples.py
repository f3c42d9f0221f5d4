"""The five examples of "Efficient transposition of replication-inducing collectives" (JAX's documentation, 2023).

Each function, its transpose, and the transpose of that, with the check on and off: what the equations that are about
axes are, over which axes their results vary, and where something is communicated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.worker.program.jaxpr_facts import Table
from shardscope.inspector.catalog.spellings import rule_of
from shardscope.inspector.ir.jaxpr import read_program
from shardscope.inspector.ir.jaxpr_text import print_jaxpr
from shardscope.inspector.report import VariableVariance
from shardscope.inspector.variance.variables import variance_of
from shardscope.parsers.source import Source

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="written with the names of JAX 0.10")

MESH = AbstractMesh((8,), ("i",), axis_types=(AxisType.Auto,))
Function = Callable[[Any], Any]


def example(number: int, check: bool) -> tuple[Function, Any]:
    """The function of one vector, and a vector."""

    def mapped(function: Callable[..., Any], specs: Any, out: Any) -> Callable[..., Any]:
        return jax.shard_map(function, mesh=MESH, in_specs=specs, out_specs=out, check_vma=check)

    def gather(x: Any) -> Any:
        options = {"to": "invarying"} if check else {}
        return lax.all_gather(x, "i", tiled=True, **options)

    both = (P("i"), P("i"))
    used = mapped(lambda x, y: lax.psum(x, "i") * y, both, P("i"))
    scaled = mapped(lambda x, y: lax.all_gather(x, "i", tiled=True) * y, both, P("i"))
    functions: dict[int, Function] = {
        1: mapped(lambda x: lax.psum(x, "i"), P("i"), P()),
        2: lambda x: used(x, jnp.arange(8.0)),
        3: mapped(lambda x: x, P(), P()),
        4: mapped(gather, P("i"), P()),
        5: lambda x: scaled(x, jnp.arange(64.0)),
    }
    return functions[number], jnp.arange(8.0)


def transpose(function: Function, like: Any) -> tuple[Function, Any]:
    shape = jax.eval_shape(function, like)
    return lambda cotangent: jax.linear_transpose(function, like)(cotangent)[0], jnp.ones(shape.shape, shape.dtype)


def about_axes(number: int, transposed: int, check: bool) -> list[VariableVariance]:
    function, argument = example(number, check)
    for _ in range(transposed):
        function, argument = transpose(function, argument)
    table = Table(jax.make_jaxpr(function)(argument))
    values = variance_of(print_jaxpr(read_program(Source("jaxpr", table.encode()))))
    assert all(value.inferred != check for value in values)
    return [value for value in values if rule_of(value.primitive) is not None]


CHECKED = {
    (1, 0): [("psum_invariant", "")],
    (1, 1): [("pvary", "i")],
    (1, 2): [("psum_invariant", "")],
    (2, 0): [("psum_invariant", ""), ("pvary", "i")],
    (2, 1): [("psum_invariant", ""), ("pvary", "i")],
    (2, 2): [("psum_invariant", ""), ("pvary", "i")],
    (3, 0): [],
    (3, 1): [],
    (3, 2): [],
    (4, 0): [("all_gather_invariant", "")],
    (5, 0): [("all_gather", "i")],
    (5, 1): [("reduce_scatter", "i")],
    (5, 2): [("all_gather", "i")],
}
"""By example, and how often it is transposed: each equation about axes, and over what its result varies."""

UNCHECKED = {
    (1, 0): [("psum", "")],
    (1, 1): [("psum", "")],
    (2, 0): [("psum", "")],
    (2, 1): [("psum", "")],
    (3, 0): [],
    (3, 1): [("psum", "")],
    (3, 2): [("psum", ""), ("psum", "")],
    (4, 0): [("all_gather", "")],
    (4, 1): [("reduce_scatter", "i")],
    (5, 0): [("all_gather", "")],
    (5, 1): [("reduce_scatter", "i")],
}
"""What is gathered is equal on all devices: that is inferred, though JAX's types would not say so."""


@pytest.mark.parametrize(
    ("key", "check", "expected"),
    [(key, True, expected) for key, expected in CHECKED.items()]
    + [(key, False, expected) for key, expected in UNCHECKED.items()],
)
def test_examples(key: tuple[int, int], check: bool, expected: list[tuple[str, str]]) -> None:
    found = about_axes(*key, check)
    assert [(value.primitive, ",".join(value.varying)) for value in found] == expected


def test_the_efficient_transpose_of_a_gather_communicates_nothing() -> None:
    found = about_axes(4, 1, True)
    assert {value.primitive for value in found} == {"axis_index", "pvary"}
    assert not [rule for value in found if (rule := rule_of(value.primitive)) and rule.lowers_to]


def test_a_defensive_psum_is_seen() -> None:
    """Example 3: its operand is the same on all devices, so that no axis leaves."""
    (needless,) = about_axes(3, 1, False)
    assert needless.left == ()
    (needed,) = about_axes(2, 1, False)
    assert needed.left == ("i",)
