"""A collective that is there for the requested sharding of an output says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.tables.collectives import collectives as collective_table
from shardscope.inspector.render.tables.communication import communication
from shardscope.inspector.report import CollectiveCause, Report
from shardscope.inspector.shardings.collective_causes import causes_of
from shardscope.inspector.shardings.explained import why, why_axes
from shardscope.inspector.shardings.table import values

PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
def on(*axes): return NamedSharding(mesh, P(*axes))
def step(v):
    return jnp.cos(v), {"w": jnp.sin(v)}
fn = jax.jit(step, out_shardings=(None, {"w": OUT}))
inputs = (jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=on("x", "y")),)
"""


def origins(report: Report, causes: Iterable[CollectiveCause]) -> set[str]:
    axes = [axis for cause in causes for axis in cause.origins]
    return {str(why.origin) for why in why_axes(report.program, axes)}


def causes(tmp_path: Path, out: str) -> tuple[Report, list[CollectiveCause]]:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.replace("OUT", out))
    *_, final = capture(Request(f"{script}:fn", live=False))
    assert final.failure is None, final.failure
    report = inspect(final)
    collectives = [each for each in report.collectives if each.stage == "hlo"]
    if all(each.source.frame is None for each in collectives):  # JAX 0.12 gives them the line of the value
        listed = [row.cells for table in (collective_table(report), communication(report)) for row in table.rows]
        assert all("output result[1]['w']" in map(str, cells) for cells in listed)
        assert {each.place.what for each in report.findings} <= {"output result[1]['w']"}
    found = [causes_of(report.program, each) for each in collectives]
    assert all(found), "each collective has a cause"
    return report, [cause for causes in found for cause in causes]


@pytest.mark.parametrize(("out", "after"), [("on()", "P(None, None)"), ('on(None, "y")', "P(None, 'y')")])
def test_the_output_is_the_cause(tmp_path: Path, out: str, after: str) -> None:
    report, found = causes(tmp_path, out)
    assert found
    assert {(cause.effect, str(cause.operation), str(cause.before)) for cause in found} == {
        ("reshard", "output result[1]['w']", "P('x', 'y')")
    }
    assert {str(cause.after) for cause in found} == {after}
    assert origins(report, found) == {"argument v"}


def test_without_the_request_nothing_is_communicated(tmp_path: Path) -> None:
    """The compiler's answer to the program without it."""
    assert causes(tmp_path, "None")[1] == []


LOOKUP = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
def on(*axes): return NamedSharding(mesh, P(*axes))
def like(spec, *shape, dtype=jnp.float32): return jax.ShapeDtypeStruct(shape, dtype, sharding=spec)
def fn(table, ids, wq):
    h = jax.lax.with_sharding_constraint(table[ids], on(ROWS, None))
    return jax.lax.with_sharding_constraint(h @ wq, on("data", "tensor"))
inputs = (
    like(on("tensor"), 64, 32), like(on("data"), 16, dtype=jnp.int32), like(on(None, "tensor"), 32, 32),
)
"""


def gathers(tmp_path: Path, rows: str) -> list[CollectiveCause]:
    script = tmp_path / "script.py"
    script.write_text(LOOKUP.replace("ROWS", rows))
    *_, final = capture(Request(f"{script}:fn", live=False))
    report = inspect(final)
    found = [each for each in report.collectives if each.stage == "hlo" and each.kind == "all-gather"]
    return [cause for each in found for cause in causes_of(report.program, each)]


def test_a_constraint_behind_a_lookup_is_the_cause(tmp_path: Path) -> None:
    """The lookup itself is executed for each device's own rows; without the constraint nothing is gathered."""
    (cause,) = gathers(tmp_path, "None")
    assert (cause.effect, cause.primitive) == ("reshard", "sharding_constraint")
    assert cause.place.line == 8
    assert (str(cause.before), str(cause.after)) == ("P('data', None)", "P(None, None)")
    assert gathers(tmp_path, '"data"') == []


ENTERED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
fn = jax.jit(jax.shard_map(lambda a: 2 * a, mesh=mesh, in_specs=SPEC, out_specs=SPEC))
inputs = (jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=NamedSharding(mesh, P(("x", "y"), None))),)
"""


def test_an_in_spec_in_another_order_is_the_cause(tmp_path: Path) -> None:
    script = tmp_path / "script.py"

    def found(spec: str) -> tuple[Report, list[CollectiveCause]]:
        script.write_text(ENTERED.replace("SPEC", spec))
        *_, final = capture(Request(f"{script}:fn", live=False))
        report = inspect(final)
        listed = [each for each in report.collectives if each.stage == "hlo"]
        return report, [cause for each in listed for cause in causes_of(report.program, each)]

    report, causes = found('P(("y", "x"))')
    assert {(cause.effect, cause.primitive) for cause in causes} == {("reshard", "shard_map")}
    assert {(str(cause.before), str(cause.after)) for cause in causes} == {
        ("P(('x', 'y'), None)", "P(('y', 'x'), None)")
    }
    assert origins(report, causes) == {"argument a"}
    assert found('P(("x", "y"))')[1] == []


RESHARDED = """
import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
fn = jax.jit(lambda v: jax.sharding.reshard(v, NamedSharding(mesh, P("y", "x"))))
inputs = (jax.ShapeDtypeStruct((16, 8), "float32", sharding=NamedSharding(mesh, P("x", "y"))),)
"""


def test_a_reshard_is_the_cause(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RESHARDED)
    *_, final = capture(Request(f"{script}:fn", live=False))
    report = inspect(final)
    found = [cause for each in report.collectives if each.stage == "hlo" for cause in causes_of(report.program, each)]
    assert {(each.primitive, str(each.before), str(each.after)) for each in found} == {
        ("reshard", "P('x', 'y')", "P('y', 'x')")
    }


MAPPED = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
def fn(a):
    mapped = jax.shard_map(lambda part: 2 * part, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")))(a)
    gathered = jax.lax.with_sharding_constraint(mapped, NamedSharding(mesh, P()))
    return jnp.cos(gathered), jnp.sin(mapped)
inputs = (jax.ShapeDtypeStruct((16, 8), jnp.float32),)
"""


def test_out_specs_are_the_cause_in_front_of_a_constraint(tmp_path: Path) -> None:
    """Shardy records the constraint, which asks for no axis: without it the axes are the same."""
    script = tmp_path / "script.py"

    def axes(text: str) -> set[tuple[str, str]]:
        script.write_text(text)
        *_, final = capture(Request(f"{script}:fn", live=False))
        program = inspect(final).program
        (sine,) = (value for value in values(program) if value.name == "sin")
        return {(str(each.axis), str(each.origin)) for each in why(program, sine)}

    kept = {("x", "output 0 of the shard_map"), ("y", "output 0 of the shard_map")}
    assert axes(MAPPED) == kept
    without = re.sub(r"jax\.lax\.with_sharding_constraint\((\w+), .*\)", r"\1", MAPPED)
    assert axes(without) == kept
