"""Findings of one helper's line say which call of the helper they are about."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.finding_facts import where
from shardscope.inspector.render.json import resolved, to_json
from shardscope.inspector.report import Report

PROGRAM = """\
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

def own(v):
    total = lax.psum(v, "x")
    rows = total.shape[0] // 8
    return lax.dynamic_slice_in_dim(total, lax.axis_index("x") * rows, rows)

@jax.shard_map(mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
def fn(a, b):
    first = own(a)
    return first * own(jnp.sin(b))

@jax.shard_map(mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
def once(a, b):
    return own(a) * b[:2]

fn_inputs = once_inputs = (jnp.ones((128, 4)),) * 2
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calls") / "script.py"
    path.write_text(PROGRAM)
    return path


def report_of(script: Path, function: str) -> Report:
    last = last_capture(Request(f"{script}:{function}", live=False))
    assert last.complete, last.failure
    return inspect(last)


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX some stacks have no frames between")
def test_findings_of_one_line(script: Path) -> None:
    tree = ast.parse(PROGRAM)
    helper, fn = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in ("own", "fn"))
    line = helper.body[0].lineno
    calls = [
        node.lineno for node in ast.walk(fn) if isinstance(node, ast.Call) and ast.unparse(node.func) == helper.name
    ]
    report = report_of(script, "fn")
    places = [each.place for each in report.findings if each.rule == "SS01"]
    assert {place.source.line for place in places} == {line}
    assert sorted({place.call_site.line for place in places if place.call_site}) == sorted(set(calls))
    document = resolved(json.loads(to_json(report)))
    written = [each["location"]["call_site"] for each in document["findings"] if each["rule"] == "SS01"]
    assert [each["line"] for each in written] == [place.call_site.line for place in places if place.call_site]


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX some stacks have no frames between")
def test_a_single_call_is_not_told(script: Path) -> None:
    (found,) = (each for each in report_of(script, "once").findings if each.rule == "SS01")
    assert (where(found), found.place.call_site) == ("script.py:8", None)
