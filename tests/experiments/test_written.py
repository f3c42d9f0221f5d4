"""Specs in the user's source: followed through names and functions, and those that an argument is placed with."""

from __future__ import annotations

import ast

import pytest
from shardscope.inspector.capture.model import Capture, Mesh, MeshAxis, Subject
from shardscope.inspector.experiments.pricing import PricedCandidate, PricedChange
from shardscope.inspector.experiments.spec_places import at_specs
from shardscope.inspector.experiments.written import fixes_of
from shardscope.inspector.findings.fixes.specs import follow
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.edits import edited
from shardscope.parsers.source import Source

pytestmark = pytest.mark.once

TEXT = b"""
def specs():
    return {"w": P("x"), "b": P()}
def again(tree):
    return again(tree)
chosen = specs()
also = chosen
whole = P()
"""


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("also", "P('x')"),
        ("specs()", "P('x')"),
        ("again(also)", "again(also)"),
        ("whole", "whole"),
        ("unknown", "unknown"),
    ],
)
def test_where_a_path_leads(text: str, end: str) -> None:
    program = Program(Capture(script_text=Source("script.py", TEXT)))
    node = ast.parse(text, mode="eval").body
    found, _ = follow(program, "script.py", node, ["['w']"])
    assert ast.unparse(found) == end


PLACED = b"""
from jax.sharding import NamedSharding, PartitionSpec as P
TABLE = {"cache": [NamedSharding(mesh, P("data"))] * 2}
def step(cache, x):
    return cache, jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
"""


def test_an_arguments_spec_is_changed_without_that_of_a_constraint_first() -> None:
    """Then with it: the argument may be what is constrained."""
    subject = Subject("step", "script.py", "cpu", "cpu", device_count=8)
    program = Program(Capture(subject=subject, script_text=Source("script.py", PLACED)))
    change = PricedChange("argument", "state[0]", "P(None, 'data')", "P('data')", spelled=True)
    ways = [sorted(edit.line for edit in edits) for edits in at_specs(program, [change])]
    assert ways == [[3], [3, 5], [3], [5]]


LOOKED_UP = b"""
import jax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("data",))
def step(table, ids):
    return table[ids]
"""


def test_a_constraint_may_leave_dimensions_open() -> None:
    meshes = (Mesh((MeshAxis("data", 8, "auto"),), tuple(range(8))),)
    subject = Subject("step", "script.py", "cpu", "cpu", device_count=8, meshes=meshes)
    report = inspect(Capture(subject=subject, script_text=Source("script.py", LOOKED_UP)))
    spec, frames = "P('data', P.UNCONSTRAINED)", (("step", "script.py", 6, 11, 6, 21),)
    change = PricedChange("new", "gather", spec, None, spelled=True, frames=frames)
    (fix,) = fixes_of(report, PricedCandidate("a", (change,), 0.0, 0.0))
    texts = [edit.text for edit in fix.edits]
    assert texts == ["jax.lax.with_sharding_constraint(", f", NamedSharding(mesh, {spec}))"]


RULES = b"""
from jax.sharding import PartitionSpec as P
RULES = [("wi", P(None, "model")), ("wo", P(None, "model")), ("", P())]
def spec_of(name, leaf):
    return next(spec for pattern, spec in RULES if pattern in name and len(spec) <= leaf.ndim)
"""


def test_a_spec_keeps_its_number_of_entries() -> None:
    """Placeholders with fewer dimensions than a parameter have its name, too, and no rule with as many entries."""
    subject = Subject("step", "script.py", "cpu", "cpu", device_count=8)
    program = Program(Capture(subject=subject, script_text=Source("script.py", RULES)))
    change = PricedChange("argument", "params['wo']", "P('model')", "P(None, 'model')", spelled=True)
    texts = {edit.text.strip(", ") for edits in at_specs(program, [change]) for edit in edits}
    assert texts == {"P('model', None)"}


ORDERED = """
from jax.sharding import PartitionSpec as P
RULES = [
    ('opt/', 'zero'),
    ("dense", P(None, "model")),
    (".*", "replicate"),
]
"""


def test_a_rule_goes_behind_the_one_that_is_meant() -> None:
    subject = Subject("step", "script.py", "cpu", "cpu", device_count=8)
    program = Program(Capture(subject=subject, script_text=Source("script.py", ORDERED.encode())))
    change = PricedChange("argument", "state['opt'].mu['dense']", "P(None, 'model')", "P('data')", spelled=True)
    changed = [(edited(program, edits) or {})["script.py"].decode() for edits in at_specs(program, [change]) if edits]
    lines = ORDERED.splitlines(keepends=True)
    assert "".join([*lines[:3], lines[4], lines[3], *lines[5:]]) in changed
