"""Sections that are asked for have everything; names that differ in the number of a layer are one."""

from __future__ import annotations

import io
from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from rich.console import Console
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.types import is_sharded_type
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.collective_rows import folded_names
from shardscope.inspector.render.modules import layers_in, without_layers
from shardscope.inspector.render.text import print_report
from shardscope.inspector.report import Report

pytestmark = pytest.mark.once

COUNT = 60
"""More arguments than any table shows unasked; each has a shape of its own, so that none are folded."""

MANY = f"""
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def program(values):
    return jax.tree.map(lambda x: jnp.tanh(jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))), values)

rows = NamedSharding(mesh, P("x"))
inputs = ({{f"w{{n}}_": jax.ShapeDtypeStruct((4 * n, 4), "f4", sharding=rows) for n in range(1, {COUNT + 1})}},)
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Report:
    script = tmp_path_factory.mktemp("many") / "program.py"
    script.write_text(MANY)
    *_, final = capture(Request(f"{script}:program"))
    assert final.complete, final.failure
    return inspect(final)


def printed(report: Report, *details: str) -> list[str]:
    text = io.StringIO()
    print_report(report, Console(file=text, width=400), details)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("details", ["shardings", "collectives", "memory", "times", "values"])
def test_nothing_is_left_out_of_a_section_that_is_asked_for(many: Report, details: str) -> None:
    more = [line for line in printed(many, details) if line.strip().startswith("and ")]
    assert not more


def test_each_argument_and_output_is_listed_once(many: Report) -> None:
    rows = (line.split() for line in printed(many, "shardings") if " ← " not in line)
    words = Counter(word for row in rows if row[:1] in (["argument"], ["output"]) for word in row)
    paths = [value.path for value in (*many.capture.arguments, *many.capture.outputs)]
    assert len(paths) == 2 * COUNT
    assert {words[path] for path in paths} == {1}


def test_types_that_are_sharded_are_those_of_explicit_meshes() -> None:
    """The spelling is JAX's own."""
    mesh = jax.sharding.AbstractMesh((2,), ("x",), axis_types=(AxisType.Explicit,))
    made = {
        spec: str(jax.core.ShapedArray((4, 4), jnp.float32, sharding=NamedSharding(mesh, spec)))
        for spec in (P("x"), P())
    }
    assert {spec: is_sharded_type(text) for spec, text in made.items()} == {P("x"): True, P(): False}
    assert not is_sharded_type("an @ that is in no type")


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["h[0].w", "h[1].w"], ["h[*].w"]),
        (["p['Block_0']['mlp']['w']", "p['Block_1']['mlp']['w']"], ["p['Block_*']['mlp']['w']"]),
        (["m.layers_0.attn.w", "m.layers_1.attn.w"], ["m.layers_*.attn.w"]),
        (["p['lm/~/mha_1/query']['w']", "p['lm/~/mha_2/query']['w']"], ["p['lm/~/mha_*/query']['w']"]),
        (["p['Dense_0']['kernel']", "p['Dense_1']['kernel']"], ["p['Dense_0']['kernel']", "p['Dense_1']['kernel']"]),
        (["s['Dense_0'].w.value", "s['Dense_1'].w.value"], ["s['Dense_0'].w.value", "s['Dense_1'].w.value"]),
        (["x1", "x2"], ["x1", "x2"]),
    ],
)
def test_layers_are_folded_and_modules_of_one_layer_are_not(names: list[str], folded: list[str]) -> None:
    assert folded_names(names) == folded


def test_haikus_modules_are_layers_from_three_on() -> None:
    parts = ("query", "key")
    several = [("lm", f"attention_{number}", part) for number in (1, 2, 3) for part in parts]
    assert set(without_layers(several, layers_in(several))) == {("lm", "attention_*", part) for part in parts}
    assert layers_in(several[:4]) == frozenset()
