"""Changes in words: each field of a collective changed alone, and tables of what is said of amounts and shardings."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest
from shardscope.inspector.diff.diff import compare_outlines
from shardscope.inspector.render.diff_words import (
    amount_text,
    axes_words,
    border_name,
    border_text,
    bytes_delta,
    differences,
    otherwise,
)
from shardscope.inspector.report.changes import (
    BoundarySharding,
    Change,
    CollectiveSignature,
    Counted,
    Fingerprint,
    Metric,
    Operand,
    Pair,
    Place,
    Transfer,
)
from shardscope.parsers.sharding_syntax.mesh import AxisRef

WORK = CollectiveSignature("all-reduce", "sum", (AxisRef("x"),), ("f32",), 64, 64, 112, 1, is_async=False)  # type: ignore[arg-type]
PLAIN = Transfer(WORK, Place((("f", "line"),), "psum", "forward"), "user", "", "", operands=(Operand("f32", 16, 16),))


def change(before: Transfer, after: Transfer, *what: str, times: tuple[int, int] = (1, 1)) -> Change:
    return Change("changed", 1, ((before, times[0]),), ((after, times[1]),), what)


TWICE = {"bytes_in": 128, "bytes_out": 128}

WORDS = [
    ({"reduction": "max"}, {}, "reduces by max instead of sum", "reduces by sum instead of max"),
    ({"reduction": None}, {}, "reduces by ? instead of sum", "reduces by sum instead of ?"),
    ({"axes": ()}, {}, "now over one device each", "now over x"),
    ({"axes": None}, {}, "now over groups of no axes", "now over x"),
    ({"dtypes": ("bf16",)}, {}, "f32 → bf16", "bf16 → f32"),
    ({"executions": 4}, {}, "runs 1 → 4 times", "runs 4 → 1 times"),
    (
        {"executions": 4},
        {"in_loop": True},
        "moved into a loop, runs 1 → 4 times",
        "moved out of a loop, runs 4 → 1 times",
    ),
    ({"executions": None}, {}, "runs 1 → ? times", "runs ? → 1 times"),
    ({}, {"in_loop": True}, "moved into a loop", "moved out of a loop"),
    ({"is_async": True}, {}, "now async", "no longer async"),
    ({"partners": "a"}, {}, "between different devices", "between different devices"),
    (
        {"bytes_in": 128, "bytes_out": 128},
        {"operands": (Operand("f32", 32, 32),)},
        "64 B → 128 B each",
        "128 B → 64 B each",
    ),
    ({"bytes_in": 128, "bytes_out": 128}, {"operands": ()}, "64 B → 128 B each", "128 B → 64 B each"),
    ({"bytes_in": 32, "bytes_out": 32, "dtypes": ("bf16",)}, {}, "f32 → bf16", "bf16 → f32"),
]


@pytest.mark.parametrize(("work", "other", "there", "back"), WORDS)
def test_one_field(work: dict[str, object], other: dict[str, object], there: str, back: str) -> None:
    changed = replace(PLAIN, work=replace(WORK, **work), **other)  # type: ignore[arg-type]
    assert otherwise(change(PLAIN, changed, *work)) == [there]
    assert otherwise(change(changed, PLAIN, *work)) == [back]
    assert differences(change(PLAIN, changed, *work)) == [there]


def test_nothing_that_has_words() -> None:
    assert differences(change(PLAIN, PLAIN)) == ["otherwise"]
    for one_side in (Change("added", 1, (), ((PLAIN, 1),)), Change("removed", 1, ((PLAIN, 1),), ())):
        assert differences(one_side) == []


def test_sizes_of_what_carries_the_same_are_not_told() -> None:
    """Operands that are known on both sides, in any number of collectives, come to the same elements or do not."""
    for ones, others in product([(), (8,), (16,), (8, 8)], repeat=2):
        sides: list[Counted] = []
        for sizes in (ones, others):
            operands = tuple(Operand("f32", size, size) for size in sizes)
            size = 4 * (sum(sizes) or 16) * (1 if sizes is ones else 2)
            work = replace(WORK, bytes_in=size, bytes_out=size)
            sides.append(((replace(PLAIN, work=work, operands=operands), 1),))
        said = otherwise(Change("changed", 1, *sides))
        same = bool(ones and others) and sum(ones) == sum(others)
        sizes_told = [text for text in said if " B → " in text]
        largest = [each[0][0].work.bytes_out for each in sides]
        assert bool(sizes_told) == (not same and largest[0] != largest[1]), (ones, others, said)


def test_numbers_of_collectives() -> None:
    """Sizes are of each where as many stand on both sides, else of all; the verb says what became of their number."""
    larger = replace(PLAIN, work=replace(WORK, bytes_in=128, bytes_out=128), operands=())
    for times in product((1, 2, 3), repeat=2):
        said = differences(change(PLAIN, larger, times=times))
        one, other = times
        verbs = {1: f"combined into {other}", -1: f"split into {other}"}
        verb = verbs.get((one > other) - (one < other), f"regrouped into {other}" if one > 1 else "")
        sizes = "64 B → 128 B each" if times == (1, 1) else f"{64 * one} B → {128 * other} B in all"
        assert said == [*filter(None, [verb]), *([sizes] if 64 * one != 128 * other else [])]
    gathered = replace(PLAIN, work=replace(WORK, kind="all-gather", reduction=None))  # type: ignore[arg-type]
    assert differences(change(PLAIN, gathered, "kind", "reduction")) == ["became all-gather"]
    assert differences(change(PLAIN, gathered, "kind", "reduction", times=(1, 2)))[0] == "became 2 all-gathers"


def test_amounts() -> None:
    for before, after, text in (
        (1024, 2048, "1 KiB → 2 KiB (+100 %)"),
        (2048, 1024, "2 KiB → 1 KiB (-50 %)"),
        (100, 990, "100 B → 990 B (+890 %)"),
        (100, 1000, "100 B → 0.98 KiB (10×)"),
        (100, 0, "100 B → 0 B (-100 %)"),
        (0, 100, "0 B → 100 B"),
        (None, 100, "not known → 100 B"),
        (100, None, "100 B → not known"),
    ):
        assert amount_text(Metric("m", before, after)) == text
    assert amount_text(Metric("m", 0.001, 0.002), seconds=True) == "1 ms → 2 ms (+100 %)"
    for one, other, text in (
        (1024, 3072, "+2 KiB"),
        (3072, 1024, "−2 KiB"),
        (5, 5, "±0 B"),
        (None, 5, "? B"),
        (5, None, "? B"),
    ):
        assert bytes_delta(one, other) == text


def border(name: str, spec: str | None = "P('x')", type: str = "f32[8]", role: str = "argument") -> BoundarySharding:
    return BoundarySharding(role, name, type, spec)


def test_shardings_of_arguments_and_outputs() -> None:
    one = border("w")
    for before, after, text in (
        (one, border("w", "P(None)"), "f32[8] P('x') → P(None)"),
        (one, border("w", None), "f32[8] P('x') → ?"),
        (one, border("w", type="f32[4]"), "f32[8] P('x') → f32[4] P('x')"),
        (None, one, "new: f32[8] P('x')"),
        (one, None, "gone: f32[8] P('x')"),
    ):
        found = Pair(before, after, 1)
        assert border_text(found) == text
        assert border_name(found) == "argument w"


def test_arguments_are_compared_by_position_or_by_name() -> None:
    """As many on both sides: by position, whatever they are called; else by name."""
    specs = {"a": "P('x')", "b": "P('y')", "c": "P()"}
    for before in permutations("abc", 2):
        for size in (1, 2, 3):
            for after in permutations("abc", size):
                for role in ("argument", "output"):
                    sides = [tuple(border(name, specs[name], role=role) for name in names) for names in (before, after)]
                    found = compare_outlines(*(Fingerprint("", "hlo", (), side) for side in sides)).borders
                    if len(before) == len(after):
                        expected = {pair for pair in zip(*sides, strict=True) if pair[0].spec != pair[1].spec}
                    else:
                        expected = {(None, each) for each in sides[1] if each.name not in before}
                        expected |= {(each, None) for each in sides[0] if each.name not in after}
                    assert {(each.before, each.after) for each in found} == expected


def test_axes() -> None:
    assert [axes_words(replace(WORK, axes=axes)) for axes in (None, (), (AxisRef("x"),))] == [
        "groups of no axes",
        "one device each",
        "x",
    ]
