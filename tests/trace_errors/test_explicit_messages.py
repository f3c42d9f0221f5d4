"""What JAX says of explicit types that do not fit is what the explainers read: each message is one that it raises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.edits import diff_of
from shardscope.inspector.trace_errors.explain import explained
from shardscope.inspector.trace_errors.table import EXPLAINERS

from tests.sweeps import sampled

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="what is explained are messages of JAX 0.10")

X, Y, WHOLE = ("x", None), (None, "y"), (None, None)


def partial_sums(a: Any) -> Any:
    return jnp.einsum("ij,kj->ik", a, a, out_sharding=P(None, None, unreduced={"x"}))


FAILING: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "cumsum": (lambda a: jnp.cumsum(a, axis=0), (X,), "explain_whole"),
    "cumsum of all": (jnp.cumsum, (X,), "explain_whole"),
    "sort": (lambda a: jnp.sort(a, axis=0), (X,), "explain_whole"),
    "top_k": (lambda a: lax.top_k(a, 2), (Y,), "explain_whole"),
    "tile": (lambda a: jnp.tile(a, (2, 1)), (X,), "explain_whole"),
    "unstack": (lambda a: jnp.unstack(a, axis=0), (X,), "explain_whole"),
    "solve": (jnp.linalg.solve, (X, WHOLE), "explain_whole"),
    "slice": (lambda a: a[:6], (X,), "explain_whole"),
    "scan": (lambda a: lax.scan(lambda c, r: (c + r, None), jnp.zeros(8), a), (X,), "explain_whole"),
    "update": (lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)), (X, Y), "explain_update"),
    "add at": (lambda a, b: a.at[jnp.arange(8)].add(b), (X, Y), "explain_update"),
    "set at": (lambda a: a.at[jnp.arange(4)].set(1.0), (X,), "explain_scatter"),
    "constraint": (lambda a: lax.with_sharding_constraint(a, P(None, "y")), (X,), "explain_constraint"),
    "in_specs": (lambda a: jax.shard_map(jnp.sin, in_specs=P("y"), out_specs=P("y"))(a), (X,), "explain_in_specs"),
    "carry": (lambda a, b: lax.scan(lambda c, r: (c @ b, None), a, jnp.zeros(3)), (X, Y), "explain_carry"),
    "fori_loop": (
        lambda a: lax.fori_loop(0, 3, lambda i, c: jax.sharding.reshard(c, P("y")), a),
        (X,),
        "explain_carry",
    ),
    "while_loop": (
        lambda a: lax.while_loop(lambda c: c[0, 0] < 3, lambda c: jax.sharding.reshard(c, P("y")), a),
        (WHOLE,),
        "explain_carry",
    ),
    "cond": (lambda a, b: lax.cond(True, lambda: a, lambda: b), (X, Y), "explain_branches"),
    "convolution": (
        lambda a, b: lax.conv_general_dilated(a[None], b[None], (1,), "SAME"),
        (X, WHOLE),
        "explain_convolution",
    ),
    "product": (lambda a: partial_sums(a) * partial_sums(a), ((None, "x"),), "explain_products"),
    "sine": (lambda a: jnp.sin(partial_sums(a)), ((None, "x"),), "explain_products"),
    "sum": (lambda a: partial_sums(a) + 1 * jnp.ones((8, 8)), ((None, "x"),), "explain_one_side"),
}
"""A function, the specs of its arguments, and who explains why it does not trace."""


@pytest.mark.parametrize("name", FAILING)
def test_a_message_of_jax_is_explained(name: str) -> None:
    function, specs, explainer = FAILING[name]
    mesh = jax.sharding.AbstractMesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    arguments = [jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P(*spec))) for spec in specs]
    with jax.sharding.use_abstract_mesh(mesh), pytest.raises(Exception, match=r".") as raised:
        jax.make_jaxpr(function)(*arguments)
    found = [explain.__name__ for pattern, explain in EXPLAINERS if pattern.search(str(raised.value))]
    assert found[:1] == [explainer], str(raised.value)


PROGRAM = """\
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)

def over(*spec):
    return jax.device_put(jnp.arange(64.0).reshape(8, 8), NamedSharding(mesh, P(*spec)))

def chained(a):
    return a.reshape(4, 2, 8).reshape(4 * 2 * 8)

def added(a, b):
    return a.at[jnp.arange(8)].add(b)

def chosen(c, a, b):
    return jnp.where(c > 3, a, b)

def carried(a, b):
    return jax.lax.scan(lambda c, _: (c @ b, None), a, length=2)[0]

def looped(a):
    def body(i, c):
        return jax.sharding.reshard(c * 2, P("x"))
    return jax.lax.fori_loop(0, 3, body, a)

def branched(a):
    return jax.lax.cond(a.sum() > 1, lambda a: jax.sharding.reshard(a, P("y")), lambda a: 1 * a, a)

def convolved(a, b):
    return jax.lax.conv_general_dilated(a[None], b[None], (1,), "SAME")

carried_inputs = (over("x"), over(None, "y"))
looped_inputs = (over(),)
branched_inputs = (over("x"),)
convolved_inputs = (over("x"), over())
chained_inputs = (over("x", "y"),)
added_inputs = (over("x"), over(None, "y"))
chosen_inputs = (over(), over("x"), over("y"))
"""
A = np.arange(64.0).reshape(8, 8)


@pytest.mark.parametrize(
    ("function", "line", "norm"),
    sampled(
        [
            (
                "chained",
                "+    return a.reshape(4, 2, 8).reshape(4 * 2 * 8, out_sharding=jax.P(('x', 'y')))",
                np.linalg.norm(A),
            ),
            (
                "added",
                "+    return a.at[jnp.arange(8)].add(jax.sharding.reshard(b, jax.P(None, None)),"
                " out_sharding=jax.typeof(a).sharding)",
                np.linalg.norm(2 * A),
            ),
            (
                "carried",
                "+    return jax.lax.scan(lambda c, _: (c @ b, None), jax.sharding.reshard(a, jax.P('x', 'y')),"
                " length=2)[0]",
                np.linalg.norm(A @ A @ A),
            ),
            (
                "looped",
                "+    return jax.lax.fori_loop(0, 3, body, jax.sharding.reshard(a, jax.P('x', None)))",
                None,
            ),
            (
                "branched",
                '+    return jax.lax.cond(a.sum() > 1, lambda a: jax.sharding.reshard(a, P("y")), lambda a:'
                " jax.sharding.reshard(1 * a, jax.P('y', None)), a)",
                None,
            ),
            (
                "convolved",
                '+    return jax.lax.conv_general_dilated(a[None], b[None], (1,), "SAME", out_sharding=jax.P())',
                None,
            ),
            (
                "chosen",
                "+    return jnp.where(jax.sharding.reshard(c > 3, jax.P('x', None)), a,"
                " jax.sharding.reshard(b, jax.P('x', None)))",
                np.linalg.norm(A),
            ),
        ],
        4,
        2,
    ),
)
def test_what_traces_keeps_the_numbers(tmp_path: Path, function: str, line: str, norm: float | None) -> None:
    """Compared with a run of the same program with automatic axes, which numpy agrees with, where there can be one."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    request = Request(f"{path}:{function}", probe="none")
    report = explained(inspect(last_capture(request)), request)
    assert report.explanation is not None
    fix = report.explanation.fixes[0]
    assert line in diff_of(report.program, fix), diff_of(report.program, fix)
    assert fix.helps
    if norm is None:  # over automatic axes a reshard is not allowed
        return
    auto = last_capture(Request(f"{path}:{function}", probe="none", fingerprints=True, overrides=("axis_types=auto",)))
    assert auto.execution.outputs[0].projections[0] == pytest.approx(norm)


def test_arrays_of_two_meshes() -> None:
    axes = (jax.sharding.AxisType.Explicit,) * 2
    meshes = [jax.sharding.AbstractMesh(sizes, ("x", "y"), axis_types=axes) for sizes in ((4, 2), (2, 4))]
    one, other = (jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P("x"))) for mesh in meshes)
    with jax.sharding.use_abstract_mesh(meshes[0]), pytest.raises(Exception, match=r".") as raised:
        jax.make_jaxpr(lambda a, b: a + b)(one, other)
    found = [explain.__name__ for pattern, explain in EXPLAINERS if pattern.search(str(raised.value))]
    assert found[:1] == ["explain_meshes"], str(raised.value)
