"""Values that differ from a run on one device, in the tables: which is first, how far off, and on which devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shardscope.inspector.capture.file import load
from shardscope.inspector.capture.model import Capture, Execution, Failure, Message, OutputSummary, Value
from shardscope.inspector.capture.one_device import _apart, _factor_of_change, _Value, on_one_device
from shardscope.inspector.capture.one_device import compared as compared_with
from shardscope.inspector.capture.protocol.events import StackFrame
from shardscope.inspector.capture.protocol.request import ONE_DEVICE, Request
from shardscope.inspector.capture.protocol.values import Apart, Reference, Summary
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.overview import attention, in_order
from shardscope.inspector.render.table import plain_text
from shardscope.inspector.render.tables.reference import deviations, reference
from shardscope.inspector.render.tables.value_sites import value_sites
from shardscope.inspector.report import Report

KEPT = Path(__file__).parent.parent / "command" / "approved" / "manual.capture"


@pytest.fixture(scope="module")
def report() -> Report:
    return inspect(load(KEPT))


def compared(report: Report, *differs: Apart, amplified: int = 0) -> Report:
    return inspect(replace(report.capture, reference=Reference(20, differs, amplified=amplified)))


def test_the_first_then_the_farthest(report: Report) -> None:
    inside = [value.probe for value in report.probes if value.probe.path]
    one = inside[0]
    other = next(probe for probe in inside if probe.path != one.path)
    places = [shard.coordinates for shard in one.shards]
    found = compared(
        report,
        *(Apart(one.path, one.when, one.position, one.iteration, place, 3.0) for place in places[1:]),
        Apart(other.path, other.when, other.position, other.iteration, (), 7.0),
        Apart((), "output", 0, (), (), 1e300),
    )
    ranked = deviations(found)
    assert [(each.is_first, each.times) for each in ranked] == [(True, "3×"), (False, "far off"), (False, "7×")]
    assert str(one.shards[0].device) not in ranked[0].devices.replace("–", " ").replace(",", " ").split()
    assert [each.devices for each in ranked[1:]] == ["all", "all"]
    rows = [[plain_text(cell) for cell in row.cells] for row in reference(found).rows]
    assert [row[0] for row in rows] == ["▲ first", "", ""]
    (said,) = [plain_text(cell) for cell in attention(found) if "one device" in plain_text(cell)]
    assert said.startswith("3 of 20 values differ from a run on one device, first ")
    sites = value_sites(found)
    column = [each.title for each in sites.columns].index("off by")
    assert sorted(filter(None, (plain_text(row.cells[column]) for row in sites.rows))) == ["7×", "far off", "first 3×"]


def test_rounding_that_is_amplified_is_not_said_to_be_equal(report: Report) -> None:
    found = compared(report, amplified=3)
    assert "17 values equal to a run on one device, 3 apart only by amplified rounding" in in_order(found)
    assert "off by" not in [each.title for each in value_sites(found).columns]


@pytest.mark.parametrize(
    ("factor", "bent", "found"), [(4, 0, 4), (0.25, 0, 0.25), (-2, 0, -2), (1, 0, None), (4, 1, None)]
)
def test_what_was_added_to_an_argument_is_a_multiple(factor: float, bent: float, found: float | None) -> None:
    """Projections are linear: those of `argument + factor * change` are known without computing any."""
    argument, change = (5.0, 1.0, -2.0), (0.75, 1.5)

    def value(times: float, more: float = 0.0) -> _Value:
        one, other = (old + times * new for old, new in zip(argument[1:], change, strict=True))
        return _Value(Apart((), "output", 0, (), (), 0.0), "f32[8]", (6.0, one + more, other - more), None, 2.0**-23)

    assert _factor_of_change(value(factor, bent), value(1), value(0)) == (found and pytest.approx(found))
    assert _factor_of_change(value(factor), value(0), value(0)) is None


def value(numbers: np.ndarray, when: str = "after", rest: object = 0) -> _Value:
    """The norm and two products, as `summing.py` computes them."""
    flat = numbers.astype(np.float64)
    weights = np.random.default_rng(1).choice([-1.0, 1.0], (2, flat.size))
    one, other = weights @ flat
    apart = Apart((), when, 0, (), (), 0.0)
    return _Value(
        apart, "add f32[64]", (float(np.linalg.norm(flat)), one, other), rest, float(np.finfo(np.float32).eps)
    )


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_rounding_is_relative_to_the_norm(scale: float) -> None:
    """A sum of 4096 numbers in single precision in any order differs from the exact one by less than is allowed."""
    rows = (np.random.default_rng(0).normal(size=(4096, 64)) * scale).astype(np.float32)
    one, other = value(rows.sum(0, dtype=np.float32)), value(rows.reshape(4, 1024, 64).sum(1).sum(0))
    assert _apart(one, other, {}) is None
    assert _apart(one, value(rows[1:].sum(0)), {}) is not None
    found = _apart(one, value(rows.sum(0) / 4), {})
    assert found is not None
    assert found.factor == pytest.approx(4, rel=1e-3)
    assert found.distance > 1000


def test_values_without_numbers_are_equal_or_not() -> None:
    digest, other = (_Value(Apart((), "after", 0, (), (), 0.0), "iota s32[8]", None, text, 0.0) for text in ("a", "b"))
    assert _apart(digest, digest, {}) is None
    found = _apart(digest, other, {})
    assert found is not None
    assert (found.distance, found.factor) == (1e300, None)
    ones = np.ones(64)
    assert _apart(value(ones), value(ones, rest=1), {}) is not None


def test_what_a_nudge_changes_as_much_is_no_difference() -> None:
    """A change of the arguments by rounding that moves a value so far leaves nothing to be said of it."""
    ones = np.ones(64)
    one, other = value(ones * 1.01), value(ones)
    assert _apart(one, other, {}) is not None
    key = ((), "after", 0, (), other.kind)
    assert _apart(one, other, {key: value(ones * 1.005)}) is None
    assert _apart(one, other, {key: value(ones * 1.0005)}) is not None
    assert _apart(one, other, {key: value(ones, rest=1)}) is None


def summary(numbers: np.ndarray, position: int = 0) -> Summary:
    found = value(numbers)
    assert found.projections is not None
    return Summary(("0.1",), position, (), "add", "float32[64]", found.projections, 0, found.epsilon)


def ran(*outputs: np.ndarray, inside: np.ndarray | None = None, argument: np.ndarray | None = None) -> Capture:
    def described(path: str, numbers: np.ndarray) -> OutputSummary:
        return OutputSummary(path, "f32[64]", None, non_finite=0, projections=value(numbers).projections)

    return Capture(
        arguments=() if argument is None else (Value("w", "f32[64]"),),
        execution=Execution(
            tuple(described(f"result[{number}]", each) for number, each in enumerate(outputs)),
            inputs="the same",
            arguments=() if argument is None else (described("", argument),),
        ),
        summaries=() if inside is None else (summary(inside),),
    )


def test_values_inside_are_told_of_where_a_result_differs() -> None:
    numbers, twice = np.arange(64.0), 2 * np.arange(64.0)
    same = compared_with(ran(numbers, inside=twice), ran(numbers, inside=numbers))
    assert (same.compared, same.differs, same.undefined) == (2, (), None)
    found = compared_with(ran(numbers, twice, inside=twice), ran(numbers, numbers, inside=numbers))
    assert found.compared == 3
    assert [(each.when, each.position, each.factor) for each in found.differs] == [
        ("after", 0, pytest.approx(2)),
        ("output", 1, pytest.approx(2)),
    ]
    nudged = ran(numbers, numbers * 1.5, inside=numbers)
    amplified = compared_with(ran(numbers, twice, inside=twice), ran(numbers, numbers, inside=numbers), nudged)
    assert (amplified.differs, amplified.amplified) == ((), 1)


def test_an_update_of_an_argument_has_its_name() -> None:
    """Of `w - rate * gradient` the change is three times what it is on one device."""
    w, gradient = np.linspace(1, 2, 64), np.cos(np.arange(64))
    (found,) = compared_with(ran(w - 0.3 * gradient, argument=w), ran(w - 0.1 * gradient, argument=w)).differs
    assert (found.argument, found.factor) == ("w", pytest.approx(3, rel=1e-2))
    of_another_type = replace(value(w), kind="f32[8,8]")
    one, other = value(w - 0.3 * gradient), value(w - 0.1 * gradient)
    assert _factor_of_change(one, other, value(w)) == pytest.approx(3, rel=1e-2)
    assert _factor_of_change(one, other, of_another_type) is None
    assert _factor_of_change(one, other, replace(value(w), projections=None)) is None
    assert _factor_of_change(replace(one, projections=None), other, value(w)) is None


def test_why_runs_cannot_be_compared() -> None:
    one = ran(np.ones(64))
    stack = (StackFrame("/model/step.py", "step", 12),)
    failed = Failure("function", "ValueError: no\nmore", "run", stack=stack)
    said = Capture(messages=(Message("info", "other", "run"), Message("info", "no live run: too large", "run")))
    for capture, alone, reason in (
        (Capture(), one, "the function did not run"),
        (one, Capture(failure=failed), "it does not run on one device: ValueError: no (step.py:12)"),
        (one, Capture(failure=replace(failed, stack=())), "it does not run on one device: ValueError: no"),
        (one, said, "it did not run on one device no live run: too large"),
        (one, Capture(), "it did not run on one device"),
        (one, ran(np.ones(64), np.ones(64)), "on one device it has other results"),
    ):
        assert compared_with(capture, alone) == Reference(0, (), reason)
    assert one.execution is not None
    other = replace(one, execution=replace(one.execution, inputs="others"))
    assert (compared_with(one, other).undefined or "").startswith("on one device it has other arguments")


def test_the_request_for_one_device(report: Report) -> None:
    request = Request("step.py:step", gradients=True, passes="all", case="folder")
    alone = on_one_device(request, report.capture, nudged=True)
    assert report.capture.subject is not None
    assert alone.devices == report.capture.subject.device_count
    assert (alone.overrides, alone.nudged, alone.gradients, alone.passes, alone.case) == (
        (ONE_DEVICE,),
        True,
        False,
        "",
        None,
    )
    assert on_one_device(replace(request, devices=3), report.capture).devices == 3
    assert on_one_device(request, Capture()).devices is None


def test_results_are_compared_by_numbers_or_else_by_bits() -> None:
    """Floats may have other bits after other sums, but no other number of NaNs; integers are equal or not."""
    projections = (3.0, 1.0, -2.0)
    real = OutputSummary("x", "f32[4@x,2]", None, non_finite=0, digest="ab", projections=projections)
    whole = OutputSummary("x", "s32[4@x]", None, non_finite=0, digest="ab")

    def differs(one: OutputSummary, other: OutputSummary) -> int:
        found = compared_with(*(Capture(execution=Execution((each,))) for each in (one, other)))
        return len(found.differs)

    assert differs(real, replace(real, digest="cd", type="f32[4,2]")) == 0
    assert differs(real, replace(real, non_finite=1)) == 1
    assert differs(real, replace(real, projections=(3.0, 1.5, -2.0))) == 1
    assert differs(whole, replace(whole, type="s32[4]", non_finite=1)) == 0
    assert differs(whole, replace(whole, digest="cd")) == 1
    for kind, step in (("bf16", 2.0**-7), ("f16", 2.0**-10), ("f8_e5m2", 2.0**-2), ("f64", 2.0**-52)):
        for times, count in ((0.5, 0), (2.0, 1)):
            allowed = min(512 * step, step**0.5) * 3.0
            moved = replace(real, type=f"{kind}[4,2]", projections=(3.0, 1.0 + times * allowed, -2.0))
            assert differs(replace(real, type=f"{kind}[4,2]"), moved) == count, kind
