"""Figures and names that a report's values give, in tables worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.capture.protocol.events import Subject
from shardscope.inspector.capture.protocol.values import Probe
from shardscope.inspector.ir.jaxpr import ShardMap
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import ArrayType, JaxType
from shardscope.inspector.report import (
    AxisEntry,
    Collective,
    CollectiveCause,
    ConstraintOrigin,
    Edit,
    Experiment,
    Finding,
    FindingPlace,
    Fix,
    LiveValue,
    Measured,
    MovedDimension,
    NamedOperation,
    PeakMemory,
    ProbedValue,
    Report,
    ShardedValue,
    ShardMapOrigin,
    SourcePosition,
    StrategyTotal,
    ValueDimension,
    ValueName,
    VariableVariance,
)
from shardscope.inspector.report.cost import Estimate, FunctionCost, constant
from shardscope.inspector.report.shardings import BoundaryOrigin
from shardscope.inspector.targets.chips import Figure
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Source, Span

NOWHERE = SourcePosition()
ARRAY = ArrayType("f32", (4,))
JAX = JaxType("f32[4]")
X = AxisRef("x")


@pytest.mark.parametrize(
    ("before", "after", "saved"), [(5, 2, 3), (2, 5, -3), (4, 4, 0), (None, 2, None), (5, None, None), (0, 0, 0)]
)
def test_savings_of_a_fix(before: int | None, after: int | None, saved: int | None) -> None:
    """Positive where it sends less, or is faster; unknown where either side is."""
    trial = Experiment("tried", before=Measured(bytes=before), after=Measured(bytes=after))
    assert (trial.bytes_saved, trial.seconds_saved) == (saved, None)
    trial = Experiment("tried", before=Measured(seconds=before), after=Measured(seconds=after))
    assert (trial.bytes_saved, trial.seconds_saved) == (None, saved)


def test_fixes_that_are_verified() -> None:
    trials = {None: False, Experiment("not helping", "worse"): False, Experiment("tried", "better"): True}
    assert [Fix("f", experiment=trial).helps for trial in trials] == list(trials.values())


def test_findings_in_their_order() -> None:
    """Errors first, among them those of gradients; and of either kind last those over parts of axes."""
    ranked = [
        finding(severity, of_gradients=of_gradients, axes=axes)
        for severity, of_gradients in (("error", True), ("error", False), ("warning", False), ("info", False))
        for axes in ((X,), (X, AxisRef("y", (1, 2))))
    ]
    mixed = [ranked[number] for number in (5, 0, 3, 7, 1, 6, 2, 4)]
    assert sorted(mixed, key=lambda each: each.rank) == ranked
    for severity in ("warning", "info"):
        assert finding(severity, of_gradients=True).rank == finding(severity).rank


def test_the_fix_that_is_proposed() -> None:
    """The verified one, else the first that was tried, else the only one that has edits."""
    edits = (Edit("a.py", 1, 0, 1, 1, "b"),)
    advised, plain, other = Fix("advice"), Fix("plain", edits), Fix("other", edits)
    failed, good = (
        replace(plain, experiment=Experiment("not helping", "worse")),
        replace(other, experiment=Experiment("tried", "better")),
    )
    for fixes, proposed in (
        ((), None),
        ((advised,), None),
        ((advised, plain), plain),
        ((plain, other), None),
        ((failed, other), failed),
        ((failed, good), good),
        ((good, failed), good),
        ((advised, failed, replace(failed, title="later")), failed),
    ):
        found = replace(finding("error"), fixes=fixes)
        assert found.proposal == proposed
        assert found.experiment == (None if proposed is None else proposed.experiment)


def finding(severity: str, *, of_gradients: bool = False, axes: tuple[AxisRef, ...] = ()) -> Finding:
    place = FindingPlace("it", NOWHERE)
    return Finding("SS01", "slug", severity, "proved", axes, "message", place, of_gradients=of_gradients)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bytes", "capacity", "fits"), [(4, None, None), (4, 5, True), (4, 4, True), (5, 4, False), (0, 0, True)]
)
def test_what_fits_in_memory(bytes: int, capacity: int | None, fits: bool | None) -> None:
    assert PeakMemory(bytes, capacity).fits is fits


@pytest.mark.parametrize("on_host", [False, True])
@pytest.mark.parametrize("in_vmem", [False, True])
def test_values_outside_of_main_memory(on_host: bool, in_vmem: bool) -> None:
    value = LiveValue("v", 4, ARRAY, "", "forward", NOWHERE, on_host=on_host, in_vmem=in_vmem)
    assert value.elsewhere == (on_host or in_vmem)


@pytest.mark.parametrize(
    ("path", "when", "label"),
    [
        ((), "argument", "argument n"),
        ((), "output", "output n"),
        (("1.2",), "before", "psum(n)"),
        (("1.2",), "after", "n = psum"),
    ],
)
def test_labels_of_probed_values(path: tuple[str, ...], when: str, label: str) -> None:
    probe = Probe(path, when, 0, "f32[4]", "float32", (4,), ("x",), ())  # type: ignore[arg-type]
    assert ProbedValue(probe, JAX, "n", "psum", ("x",), NOWHERE).label == label


def test_where_an_axis_came_in() -> None:
    assert AxisEntry("x", "1.2", "pcast", NOWHERE).by == "pcast"
    assert AxisEntry("x", "1.2", "shard_map", NOWHERE, 3, "in_specs[1]").by == "in_specs[1]"


@pytest.mark.parametrize(
    ("names", "specs"),
    [
        (("p['a']", "p['b']", "x"), ["in_specs[0] (p['a'])", "in_specs[0] (p['b'])", "in_specs[1]"]),
        (("p[0]", "p[1]", "x"), ["in_specs[0] (p[0])", "in_specs[0] (p[1])", "in_specs[1]"]),
        (("x", "rest[0]", "rest[1]"), ["in_specs[0]", "in_specs[1] (rest[0])", "in_specs (rest[1])"]),
        ((), ["in_specs", "in_specs", "in_specs"]),
    ],
)
def test_the_spec_of_a_leaf_by_its_position_in_the_call(names: tuple[str, ...], specs: list[str]) -> None:
    mapped = ShardMap(("x",), True, ((), (), ()), names=names)
    assert [mapped.in_spec(number) for number in range(3)] == specs


@pytest.mark.parametrize("left", [(), ("y",)])
@pytest.mark.parametrize("hidden", [(), ("z",)])
@pytest.mark.parametrize("entered", [(), ("1.1",), ("1.2",), ("1.1", "1.2")])
def test_values_with_other_axes_than_their_operands(
    left: tuple[str, ...], hidden: tuple[str, ...], entered: tuple[str, ...]
) -> None:
    """An axis leaves, enters at this very equation, or is not in the type."""
    entries = tuple(AxisEntry("x", equation, "pcast", NOWHERE) for equation in entered)
    value = VariableVariance("1.2", "p", "v", JAX, (), (), (), NOWHERE, hidden=hidden, entered=entries, left=left)
    assert value.changes_axes is (left == ("y",) or hidden == ("z",) or "1.2" in entered)


def collective(wire: int | None, executions: int | None, most: int | None, seconds: float | None) -> Collective:
    estimated = None if seconds is None else Estimate(seconds, "node", "", ())
    return Collective(
        stage="hlo", kind="all-reduce", name="c", computation="main", span=Span(0, 1), axes=None, groups=((0,),),
        pairs=(), operand_types=(), result_types=(), bytes_in=None, bytes_out=None, wire_bytes=wire,
        executions=executions, is_async=False, origin="user", direction="forward", source=NOWHERE, estimate=estimated,
        most_executions=most,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "executions", "most", "seconds"), product((None, 0, 7), (None, 0, 3), (None, 5), (None, 0.5))
)
def test_what_a_collective_takes_in_a_step(
    wire: int | None, executions: int | None, most: int | None, seconds: float | None
) -> None:
    """As much as one execution, so often; unknown where either is."""
    found = collective(wire, executions, most, seconds)
    assert found.step_bytes == (None if None in (wire, executions) else (wire or 0) * (executions or 0))
    assert found.most_step_bytes == (None if None in (wire, most) else (wire or 0) * (most or 0))
    assert found.step_seconds == (None if None in (seconds, executions) else (seconds or 0) * (executions or 0))


def test_what_bounds_a_function() -> None:
    for unknown, at_least in (((), False), (("a loop",), True)):
        for slowest in ("compute", "memory", "communication"):
            times = {name: 2.0 if name == slowest else 1.0 for name in ("compute", "memory", "communication")}
            cost = FunctionCost("v5p", 1, 1, total=3.0, waiting=0.0, unknown=unknown, figures=(), **times)
            assert (cost.bound, cost.at_least) == (slowest, at_least)
    term = constant("B", Figure(9e10, "a page"), "B/s", "bandwidth")
    assert (term.symbol, term.value, term.unit, term.meaning, term.source) == ("B", 9e10, "B/s", "bandwidth", "a page")


@pytest.mark.parametrize(
    ("strategy", "is_planned"),
    [("gradient sync", True), ("reductions", False), ("other", False), ("resharding", False)],
)
def test_strategies_that_shardings_are_chosen_for(strategy: str, is_planned: bool) -> None:
    assert StrategyTotal(strategy, "all-reduce", None, (), None, None).is_planned is is_planned  # type: ignore[arg-type]


ADD, UNNAMED = NamedOperation("add", "stablehlo.add"), NamedOperation("", "stablehlo.add")
MADE = ValueName("%3", ADD)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ADD, "add"),
        (UNNAMED, "stablehlo.add"),
        (ValueName("params['w']"), "params['w']"),
        (MADE, "%3 (add)"),
        (ValueName("%3", UNNAMED), "%3 (stablehlo.add)"),
        (ValueName("1", NamedOperation("shard_map", ""), is_input=True), "input 1 of the shard_map"),
        (ValueDimension(MADE, None), "%3 (add)"),
        (ValueDimension(MADE, 0), "%3 (add) dim 0"),
        (MovedDimension(True, MADE, 1), "dim 1 of operand %3 (add)"),
        (MovedDimension(False, MADE, 0), "dim 0 of result %3 (add)"),
        (BoundaryOrigin("argument", "x", 1), "argument x"),
        (ShardMapOrigin("input", 2), "input 2 of the shard_map"),
        (ConstraintOrigin(), "with_sharding_constraint"),
        (ConstraintOrigin(ADD), "the sharding of add"),
    ],
)
def test_names_of_values(value: object, text: str) -> None:
    assert str(value) == text


def test_what_makes_a_value_that_moves() -> None:
    assert MovedDimension(True, MADE, 0).made_by == ADD
    assert MovedDimension(True, ValueName("x"), 0).made_by is None
    assert MovedDimension(True, ValueName("1", ADD, is_input=True), 0).made_by is None
    assert [MovedDimension(is_operand, MADE, 0).of for is_operand in (True, False)] == [
        "operand %3 (add)",
        "result %3 (add)",
    ]


@pytest.mark.parametrize(
    ("operation", "primitive"),
    [
        (ADD, "add"),
        (UNNAMED, "stablehlo.add"),
        (NamedOperation("dot_general", "dot"), "dot_general"),
        (BoundaryOrigin("output", "dot_general"), ""),
    ],
)
def test_operations_of_causes(operation: NamedOperation | BoundaryOrigin, primitive: str) -> None:
    cause = CollectiveCause("sum", operation, None, NOWHERE, None, None, None, (), (), False, "exact")
    assert cause.primitive == primitive


@pytest.mark.parametrize(
    ("name", "leaf"), [("params['w'][0]", "['w'][0]"), ("params", ""), ("[1]", "[1]"), ("result[0]", "[0]")]
)
def test_the_place_in_an_argument(name: str, leaf: str) -> None:
    value = ShardedValue(
        "sdy", "argument", "%a", name, Span(0, 1), ARRAY, None, None, None, None, None, None, NOWHERE
    )  # fmt: skip
    assert value.leaf == leaf


def test_a_report_of_texts() -> None:
    """One of a text that could not be read in full says so; there may be no script, and no renderer of notebooks."""
    texts = {"hlo": b"HloModule m\n\nENTRY %e (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2] parameter(0)\n}\n"}
    texts["hlo-spmd"] = texts["hlo"].replace(b"ROOT", b"? ? ?\n  ROOT")
    stages = tuple(Stage(name, "hlo", Source(name, text)) for name, text in texts.items())
    report = Report(Program(Capture(stages=stages)))
    assert [report.could_be_read(name) for name in ("hlo", "hlo-spmd", "sdy")] == [True, False, True]
    assert report.script is None
    subject = Subject("f", "f.py", "cpu", "cpu", 1)
    assert Report(Program(Capture(subject=subject))).script == "f.py"


def test_pages_of_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report(Program(Capture()))
    for renderer, page in ((None, None), (lambda found: f"<p>{len(found.collectives)}</p>", "<p>0</p>")):
        monkeypatch.setattr(Report, "as_html", renderer)
        assert report._repr_html_() == page
