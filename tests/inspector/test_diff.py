"""Pairs of programs of which is known what differs in their communication."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from shardscope.inspector.capture.errors import CaptureError
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.diff.diff import Diff, compare_outlines, diff
from shardscope.inspector.diff.matching import RULES
from shardscope.inspector.diff.outline import Place, Transfer, Work
from shardscope.inspector.diff.pairing import pair_up
from shardscope.inspector.diff.wording import headline
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.diff_markdown import diff_to_markdown
from shardscope.inspector.render.json.diff import diff_json_schema, diff_to_json

from tests.conftest import SampleCapture

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "diff.schema.json"

SCRIPT = """
from functools import partial
import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P("y")), out_specs=(P(), P()))
def step(a, b):
    def body(_, total):
        return total + lax.psum(jnp.sin(a + total), "x")
    looped = lax.fori_loop(0, 3, body, jnp.zeros_like(a))
    once = lax.pmax(b * 2, "y")
    return lax.psum(looped, "x"), once

step_inputs = (jnp.arange(32.0).reshape(8, 4), jnp.arange(6.0))
"""

Counted = tuple[tuple[Transfer, int], ...]
Captured = Callable[[str], Capture]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    """Captures a text of the script, each once."""
    known: dict[str, Capture] = {}

    def of(script: str) -> Capture:
        if script not in known:
            path = tmp_path_factory.mktemp("script") / "script.py"
            path.write_text(script)
            *_, known[script] = capture(Request(f"{path}:step", live=False))
            assert known[script].complete, known[script].failure
        return known[script]

    return of


def edited(*edits: tuple[str, str]) -> str:
    """The script, with texts replaced that it must have."""
    script = SCRIPT
    for old, new in edits:
        assert old in script
        script = script.replace(old, new)
    return script


CASES: dict[str, tuple[str, list[tuple[str, int, str, str]]]] = {
    "moved by three lines": ("\n\n\n" + SCRIPT, []),
    "comments": (edited(("pmax(b * 2", "pmax(  # the largest\n        b * 2")), []),
    "renamed variables": (edited(("looped", "sums"), ("once", "top")), []),
    "renamed function": (edited(("def step(", "def other("), ("step_inputs", "step = other\nstep_inputs")), []),
    "reordered": (
        edited(
            ('    once = lax.pmax(b * 2, "y")\n', ""),
            ("    def body", '    once = lax.pmax(b * 2, "y")\n    def body'),
        ),
        [],
    ),
    "a psum more": (edited(("psum(looped", 'psum(lax.psum(looped, "y")')), [("added", 1, "all-reduce", "y")]),
    "a pmax less": (
        edited(('lax.pmax(b * 2, "y")', "b * 2"), ("P(), P())", 'P(), P("y"))')),
        [("removed", 1, "all-reduce", "y")],
    ),
    "more trips": (edited(("(0, 3,", "(0, 5,")), [("changed", 1, "all-reduce", "x")]),
    "another dtype": (edited(("b * 2", "(b * 2).astype(jnp.int32)")), [("changed", 1, "all-reduce", "y")]),
    "hoisted": (
        edited(
            ('total + lax.psum(jnp.sin(a + total), "x")', "total + summed"),
            ("    def body", '    summed = lax.psum(jnp.sin(a), "x")\n    def body'),
        ),
        [("changed", 1, "all-reduce", "x")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_known_changes(captured: Captured, name: str) -> None:
    script, expected = CASES[name]
    found = diff(inspect(captured(SCRIPT)), inspect(captured(script)))
    assert [_summary(found, number) for number in range(len(found.changes))] == expected, headline(found)
    assert found.communication_differs == bool(expected)
    assert headline(found).startswith("no change in communication") == (not expected)


def _summary(found: Diff, number: int) -> tuple[str, int, str, str]:
    change = found.changes[number]
    side = change.after or change.before
    assert side is not None
    return change.kind, change.count, side.work.kind, ", ".join(side.work.axes or ())


def test_what_changed_is_told(captured: Captured) -> None:
    before = inspect(captured(SCRIPT))
    (trips,) = diff(before, inspect(captured(CASES["more trips"][0]))).changes
    assert trips.what == ("executions",)
    assert trips.before is not None
    assert trips.wire_bytes == 2 * (trips.before.work.wire_bytes or 0)
    more = diff(before, inspect(captured(CASES["a psum more"][0])))
    assert headline(more).startswith("+1 all-reduce over y: +")
    less = diff(inspect(captured(CASES["a psum more"][0])), before)
    assert headline(less).startswith("−1 all-reduce over y: −")


def test_a_reduction_that_became_a_scatter(sample: SampleCapture) -> None:
    found = diff(*(inspect(sample(f"missing_reduce_scatter:{name}")) for name in ("faulty", "repaired")))
    (change,) = found.changes
    assert change.before is not None
    assert change.after is not None
    assert (change.before.work.kind, change.after.work.kind) == ("all-reduce", "reduce-scatter")
    assert headline(found) == (
        "1 all-reduce over x became reduce-scatter: −224 B per device and run; gone: SS01 missing-reduce-scatter"
    )


@pytest.mark.parametrize("name", ["transformer:train_step", "tensor_parallel:grad"])
def test_another_jax_changes_no_communication(sample: SampleCapture, name: str) -> None:
    other = os.environ.get("SHARDSCOPE_OTHER_PYTHON")
    if not other:
        pytest.skip("SHARDSCOPE_OTHER_PYTHON names no interpreter with another JAX")
    here = sample(name)
    assert here.subject is not None
    *_, there = capture(Request(f"{here.subject.script}:{here.subject.function}", live=False, python=other))
    assert there.complete, there.failure
    assert there.subject is not None
    assert there.subject.jax != here.subject.jax
    found = diff(inspect(here), inspect(there))
    assert found.changes == (), headline(found)
    assert found.opcodes != (), "two versions that compile the same are no test"


def test_shardings_of_arguments_and_of_what_follows_from_them(captured: Captured) -> None:
    other = edited(('P("x"), P("y")', 'P("x"), P(None)'))
    found = diff(inspect(captured(SCRIPT)), inspect(captured(other)))
    assert [change.before.name for change in found.borders if change.before is not None] == ["b", "result[1]"]


def test_json_and_markdown(captured: Captured) -> None:
    assert json.loads(PUBLISHED.read_text()) == diff_json_schema()
    found = diff(inspect(captured(SCRIPT)), inspect(captured(CASES["a psum more"][0])))
    document = json.loads(diff_to_json(found))
    Draft202012Validator(json.loads(PUBLISHED.read_text())).validate(document)
    assert document["headline"] == headline(found)
    (change,) = document["changes"]
    assert (change["change"], change["before"], change["after"]["axes"]) == ("added", None, ["y"])
    lines = diff_to_markdown(found).splitlines()
    assert lines[0] == f"**{headline(found)}**"
    assert any(line.startswith("| +1 | all-reduce | y |") for line in lines)


def test_texts_of_different_stages_cannot_be_compared(captured: Captured) -> None:
    whole = captured(SCRIPT)
    one, other = (
        replace(whole, stages=tuple(s for s in whole.stages if s.name in names)) for names in (("hlo",), ("sdy",))
    )
    with pytest.raises(CaptureError, match="cannot be compared"):
        diff(inspect(one), inspect(other))


works = st.builds(
    Work,
    st.sampled_from(("all-reduce", "all-gather")),
    st.none(),
    st.sampled_from((("x",), ("y",))),
    st.just(("f32",)),
    st.sampled_from((8, 16)),
    st.just(8),
    st.sampled_from((4, None)),
    st.sampled_from((1, 3, None)),
    st.booleans(),
)
places = st.builds(
    Place, st.sampled_from(((("f", "a"),), (("g", "b"), ("f", "a")), (("", ""),))), st.just("psum"),
    st.sampled_from(("forward", "backward")),
)  # fmt: skip
transfers = st.builds(Transfer, works, places, st.just("user"), st.just(""), st.just(""))
sides = st.dictionaries(transfers, st.integers(1, 3), max_size=8).map(lambda counted: tuple(counted.items()))


@given(sides, sides)
def test_every_collective_is_paired_once(before: Counted, after: Counted) -> None:
    pairs = pair_up(before, after, RULES)
    for number, side in enumerate((before, after)):
        counts: dict[Transfer, int] = {}
        for pair in pairs:
            one = (pair.before, pair.after)[number]
            if one is not None:
                counts[one] = counts.get(one, 0) + pair.count
        assert counts == dict(side)
    # What is the same on both sides is never called a change: as many pairs as the multisets have in common.
    same = sum(p.count for p in pairs if p.before is not None and p.after is not None and p.before.work == p.after.work)
    tallies: list[dict[Work, int]] = [{}, {}]
    for tally, side in zip(tallies, (before, after), strict=True):
        for transfer, count in side:
            tally[transfer.work] = tally.get(transfer.work, 0) + count
    assert same == sum(min(count, tallies[1].get(work, 0)) for work, count in tallies[0].items())


def test_the_same_twice(sample: SampleCapture) -> None:
    report = inspect(sample("fsdp_tp:grad"))
    found = diff(report, report)
    assert (found.changes, found.borders, found.sizes, found.costs, found.opcodes) == ((), (), (), (), ())
    assert found.same == found.before.count > 0
    assert compare_outlines(found.before, found.after) == found
