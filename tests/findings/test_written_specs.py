"""Specs of a jit's results, written anew in its source: the file is run, and JAX says what they then are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Subject
from shardscope.inspector.findings.fixes.specs import with_out_specs
from shardscope.inspector.ir.array_sharding import ArraySharding, DimensionSharding
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Edit, Report, ShardedValue, SourcePosition
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax
from shardscope.parsers.source import Source, Span

SCRIPT = """\
from functools import partial
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

{above}

@partial(jax.jit{keywords})
def f(a):
    return a
"""
ABOVE = """\
mesh = jax.make_mesh((1, 1), ("x", "y"))
rows, columns, row = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x")), P("x")
"""
ONE, PAIR, TREE = (
    ("result",),
    ("result[0]", "result[1]"),
    ("result['a']", "result['b'][0]", "result['b'][1]", "result['c']['d']"),
)


def sharded(*axes: str) -> ArraySharding:
    dims = tuple(DimensionSharding((AxisRef(axis),) if axis else ()) for axis in axes)
    return ArraySharding(MeshSyntax((("x", 1), ("y", 1))), dims)


def report_of(text: str, results: tuple[str, ...]) -> Report:
    subject = Subject("f", "f.py", "cpu", "cpu", 1)
    values = [
        ShardedValue(
            "sdy",
            "output",
            "",
            name,
            Span(0, 0),
            ArrayType("f32", (8, 8)),
            None,
            None,
            None,
            None,
            None,
            None,
            SourcePosition((), "none"),
        )
        for name in results
    ]
    script = Source("f.py", text.encode())
    return replace(inspect(Capture(subject=subject, script_text=script, complete=True)), shardings=tuple(values))


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with all edits, the last first."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda each: (each.line, each.column), reverse=True):
        first, last = lines[edit.line - 1].encode(), lines[edit.end_line - 1].encode()
        new = (first[: edit.column] + edit.text.encode() + last[edit.end_column :]).decode()
        lines[edit.line - 1 : edit.end_line] = new.splitlines(keepends=True)
    return "".join(lines)


def requested(text: str, results: tuple[str, ...]) -> dict[str, PartitionSpec | None]:
    """The spec of each result that the file gives to jit, as JAX spreads it over a tree."""
    seen: list[Any] = []

    def jit(function: object, out_shardings: object = None) -> object:
        seen.append(out_shardings)
        return function

    original, jax.jit = jax.jit, jit  # type: ignore[assignment]
    try:
        exec(text, {})
    finally:
        jax.jit = original
    tree: dict[tuple[str, ...], Any] = {(): seen[0]}
    found = {}
    for name in results:
        part = tree[()]
        for step in name.removeprefix("result").strip("[]").split("][") if "[" in name else ():
            part = part[eval(step)] if isinstance(part, (tuple, list, dict)) else part
        found[name] = part.spec if isinstance(part, NamedSharding) else part
    return found


@pytest.mark.parametrize(
    ("keywords", "results", "other", "is_written"),
    [
        ("", ONE, {"result": ("y",)}, True),
        ("", PAIR, {"result[1]": ("", "y")}, True),
        ("", TREE, {"result['b'][1]": ("y",), "result['c']['d']": ("x", "y")}, True),
        (", out_shardings=None", PAIR, {"result[0]": ("y",)}, True),
        (", out_shardings=rows", ONE, {"result": ("y",)}, True),
        (", out_shardings=rows", PAIR, {"result[0]": ("y",)}, True),
        (", out_shardings=rows", TREE, {"result['a']": ("y",)}, True),
        (", out_shardings=NamedSharding(mesh, P('x'))", ONE, {"result": ("y", "x")}, True),
        (", out_shardings=NamedSharding(mesh, spec=row)", ONE, {"result": ("y", "x")}, True),
        (", out_shardings=(rows, columns)", PAIR, {"result[1]": ("y",)}, True),
        (", out_shardings=[rows, columns]", PAIR, {"result[0]": ("y",), "result[1]": ("y", "x")}, True),
        (", out_shardings=(rows, None)", PAIR, {"result[0]": ("y",)}, True),
        (
            ", out_shardings={'a': rows, 'b': (rows, NamedSharding(mesh, P('x'))), 'c': {'d': columns}}",
            TREE,
            {"result['b'][1]": ("", "y"), "result['a']": ("y",)},
            True,
        ),
        # One for both parts of `b`, of which a tree is written out.
        (", out_shardings={'a': rows, 'b': rows, 'c': rows}", TREE, {"result['b'][1]": ("y",)}, True),
        (", out_shardings=(rows,)", PAIR, {"result[1]": ("y",)}, False),
        ("", ("result.loss",), {"result.loss": ("y",)}, False),
        ("", ("result.loss", "result.aux"), {"result.loss": ("y",)}, False),
        (", out_shardings=(rows, columns)", ("result.loss[0]", "result.loss[1]"), {"result.loss[1]": ("y",)}, False),
        ("", ("result[0].loss", "result[1]"), {"result[1]": ("y",)}, False),
    ],
)  # fmt: skip
def test_other_specs_of_results(
    keywords: str, results: tuple[str, ...], other: dict[str, tuple[str, ...]], is_written: bool
) -> None:
    text = SCRIPT.format(above=ABOVE, keywords=keywords)
    edits = with_out_specs(report_of(text, results), {name: sharded(*axes) for name, axes in other.items()})
    assert bool(edits) == is_written
    if edits:
        before, after = requested(text, results), requested(edited(text, edits), results)
        assert after == before | {name: PartitionSpec(*(axis or None for axis in axes)) for name, axes in other.items()}


def test_without_a_mesh_nothing_is_written() -> None:
    text = SCRIPT.format(above="", keywords="")
    assert not with_out_specs(report_of(text, ONE), {"result": sharded("y")})
