"""Pairs of programs of which is known what differs in their communication."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.diff.diff import compare_outlines, diff
from shardscope.inspector.diff.matching import match
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.headline import headline
from shardscope.inspector.render.json.diff import diff_json_schema, diff_to_json
from shardscope.inspector.render.markdown import diff_to_markdown
from shardscope.inspector.report.changes import CollectiveSignature, Counted, Fingerprint, Operand, Place, Transfer

from tests.conftest import SampleCapture

from .conftest import Edited

pytestmark = pytest.mark.once

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "diff.schema.json"

Numbers = list[tuple[int | tuple[int, ...], int]]
MORE_TRIPS = (("(0, 3,", "(0, 5,"),)
ANOTHER_PSUM = (("psum(looped", 'psum(lax.psum(looped, "y")'),)


def test_what_changed_is_told(edited: Edited) -> None:
    before = inspect(edited("script:step", ()))
    (trips,) = diff(before, inspect(edited("script:step", MORE_TRIPS))).changes
    assert trips.what == ("executions",)
    assert trips.before is not None
    assert trips.wire_bytes == 2 * (trips.before.work.wire_bytes or 0)
    more = diff(before, inspect(edited("script:step", ANOTHER_PSUM)))
    assert headline(more).startswith("+1 all-reduce over y: +")
    less = diff(inspect(edited("script:step", ANOTHER_PSUM)), before)
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


def test_shardings_of_arguments_and_of_what_follows_from_them(edited: Edited) -> None:
    other = edited("script:step", (('P("x"), P("y")', 'P("x"), P(None)'),))
    found = diff(inspect(edited("script:step", ())), inspect(other))
    assert [change.before.name for change in found.borders if change.before is not None] == ["b", "result[1]"]


@pytest.mark.skipif(msgspec.__version__ < "0.20", reason="older msgspec writes its schemas otherwise")
def test_json_and_markdown(edited: Edited) -> None:
    assert json.loads(PUBLISHED.read_text()) == diff_json_schema()
    found = diff(inspect(edited("script:step", ())), inspect(edited("script:step", ANOTHER_PSUM)))
    document = json.loads(diff_to_json(found))
    Draft202012Validator(json.loads(PUBLISHED.read_text())).validate(document)
    assert document["headline"] == headline(found)
    (change,) = document["changes"]
    assert (change["change"], change["before"], change["after"][0]["collective"]["axes"]) == ("added", [], ["y"])
    lines = diff_to_markdown(found).splitlines()
    assert lines[0] == f"**\\{headline(found)}**"
    assert any(line.startswith("| \\+ | all-reduce | y |") for line in lines)


def test_texts_of_different_stages_cannot_be_compared(edited: Edited) -> None:
    whole = edited("script:step", ())
    one, other = (
        replace(whole, stages=tuple(s for s in whole.stages if s.name in names)) for names in (("hlo",), ("sdy",))
    )
    with pytest.raises(CaptureError, match="cannot be compared"):
        diff(inspect(one), inspect(other))


works = st.builds(
    CollectiveSignature,
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
operands = st.lists(st.builds(Operand, st.just("f32"), st.integers(1, 4), st.integers(1, 4)), max_size=4).map(tuple)
nothing = st.just("")
transfers = st.builds(
    Transfer, works, places, st.just("user"), nothing, nothing, nothing, st.just(False), st.none(), operands
)
sides = st.dictionaries(transfers, st.integers(1, 3), max_size=8).map(lambda counted: tuple(counted.items()))


@given(sides, sides)
def test_every_collective_is_paired_once(before: Counted, after: Counted) -> None:
    pairs, regroupings = match(before, after)
    for number, side in enumerate((before, after)):
        counts: Counter[Transfer] = Counter()
        for pair in pairs:
            one = (pair.before, pair.after)[number]
            counts.update({} if one is None else {one: pair.count})
        for each in regroupings:
            counts.update({one: count * each.count for one, count in (each.befores, each.afters)[number]})
        assert counts == dict(side)
    # What is the same on both sides is never called a change: as many pairs as the multisets have in common.
    same = sum(p.count for p in pairs if p.before is not None and p.after is not None and p.before.work == p.after.work)
    tallies: list[Counter[CollectiveSignature]] = [Counter(), Counter()]
    for tally, side in zip(tallies, (before, after), strict=True):
        for transfer, count in side:
            tally[transfer.work] += count
    assert same == (tallies[0] & tallies[1]).total()


def carrying(kind: str, *sizes: int, to: int = 1) -> Transfer:
    """A collective of arrays of so many elements, each result `to` times as large, that nothing is known of."""
    size = 4 * sum(sizes)
    work = CollectiveSignature(kind, "sum", ("x",), ("f32",), size, size * to, size, 1, is_async=False)  # type: ignore[arg-type]
    carried = tuple(Operand("f32", each, each * to) for each in sizes)
    return Transfer(work, Place((("", ""),), "", "unknown"), "unknown", "", "", operands=carried)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        # 24 of two sizes in one, and what else there was stays as it is.
        ([(8, 12), (3, 12)], [((8,) * 12 + (3,) * 12, 1)], "24 all-reduces over x combined into 1"),
        # The same, laid out one after another.
        ([(8, 12), (3, 12)], [((8 * 12 + 3 * 12,), 1)], "24 all-reduces over x combined into 1"),
        ([((8, 3), 2)], [(8, 2), (3, 2)], "2 all-reduces over x split into 4"),
        ([((8, 3), 1), ((5, 4), 1)], [((8, 5), 1), ((3, 4), 1)], "2 all-reduces over x regrouped into 2"),
        ([(8, 1), (3, 1)], [((8, 4), 1)], None),
        ([(8, 1), (3, 1)], [((8, 3, 2), 1)], None),
    ],
)
def test_combined_is_no_change_of_volume(before: Numbers, after: Numbers, told: str | None) -> None:
    sides = [
        tuple((carrying("all-reduce", *(size if isinstance(size, tuple) else (size,))), n) for size, n in side)
        for side in (before, after)
    ]
    found = compare_outlines(
        *(Fingerprint("", "hlo", (*side, (carrying("all-gather", 7, to=4), 1)), ()) for side in sides)
    )
    assert found.same == 1
    assert found.communication_differs == (told is None)
    assert headline(found).startswith(f"no change in communication volume ({told};") == (told is not None)
    back = compare_outlines(found.after, found.before)
    assert [c.numbers for c in back.changes] == [c.numbers[::-1] for c in found.changes]
    # Over other axes it is something else.
    for other in (("y",), ("x", "y")):
        moved = tuple((replace(one, work=replace(one.work, axes=other)), n) for one, n in sides[1])
        found = compare_outlines(Fingerprint("", "hlo", sides[0], ()), Fingerprint("", "hlo", moved, ()))
        assert found.communication_differs


@pytest.mark.parametrize("over", [((("x",), ""), (("y",), "")), ((None, "{{0,3},{1,2}}"), (None, "{{0,2},{1,3}}"))])
@pytest.mark.parametrize("frames", [(("f", "a"),), (("", ""),)])
@pytest.mark.parametrize("change", [{"dtypes": ("bf16",)}, {"executions": 5}, {"kind": "all-to-all"}, {"bytes_in": 9}])
def test_what_changes_is_paired_over_the_same_axes_or_devices(
    over: tuple[tuple[Any, str], ...], frames: tuple[tuple[str, str], ...], change: dict[str, Any]
) -> None:
    one, other = (
        replace(
            alone, work=replace(alone.work, axes=axes, partners=partners), place=replace(alone.place, frames=frames)
        )
        for alone in [carrying("all-reduce", 8)]
        for axes, partners in over
    )
    after = [replace(each, work=replace(each.work, **change)) for each in (other, one)]
    _, found = match(((one, 1), (other, 1)), tuple((each, 1) for each in after))
    pairs = {
        (a.work.axes or a.work.partners, b.work.axes or b.work.partners)
        for p in found
        for (a, _), (b, _) in [(*p.befores, *p.afters)]
    }
    assert pairs == {(axes or partners,) * 2 for axes, partners in over}


@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
@pytest.mark.skipif(jax.__version_info__[:2] != (0, 10), reason="true of what XLA of JAX 0.10 does")
def test_two_targets(sample: SampleCapture) -> None:
    """For TPUs there are no reduce-scatters of this size, weights go as bf16, and small ones together."""
    here = sample("fsdp_tp:grad")
    assert here.subject is not None
    *_, there = capture(Request(f"{here.subject.script}:grad", live=False, target="tpu:v5p:2x2x2"))
    assert there.complete, there.failure
    found = diff(inspect(here), inspect(there))
    told = Counter(
        (
            change.numbers,
            *(side and (side.work.kind, *map(str, side.work.axes or ())) for side in (change.before, change.after)),
        )
        for change in found.changes
    )
    batch, feats = ("batch",), ("feats",)
    assert told == {
        ((6, 1), ("reduce-scatter", *batch), ("all-reduce", *batch)): 1,
        ((3, 1), ("all-gather", *batch), ("all-reduce", *batch)): 1,
        ((2, 2), ("reduce-scatter", *feats), ("all-reduce", *feats)): 1,
        ((1, 1), ("reduce-scatter", *feats), ("all-reduce", *feats)): 1,
        ((1, 1), ("all-gather", *batch), ("all-gather", *batch)): 3,
        ((1, 1), ("all-gather", *feats), ("all-gather", *feats)): 1,
        ((2, 2), ("all-gather", *feats), ("all-gather", *feats)): 1,
        ((0, 1), None, ("all-gather", *batch)): 2,
    }


def test_the_same_twice(sample: SampleCapture) -> None:
    report = inspect(sample("fsdp_tp:grad"))
    found = diff(report, report)
    assert (found.changes, found.borders, found.sizes, found.costs, found.opcodes) == ((), (), (), (), ())
    assert found.same == found.before.count > 0
    again = compare_outlines(found.before, found.after)
    assert replace(again, around=found.around) == found
