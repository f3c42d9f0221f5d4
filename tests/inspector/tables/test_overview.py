"""The first and the last lines of a report: what was captured, what it takes, what is wrong, and what is in order."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Execution, Failure, OutputSummary, Stage, Subject
from shardscope.inspector.capture.protocol.values import Apart, Compared, Derivative, Gradients, Probed, Reference
from shardscope.inspector.render.overview import (
    attention,
    in_order,
    mesh_text,
    nothing_sent,
    resources_text,
    subject_text,
)
from shardscope.inspector.render.table import pieces, plain_text
from shardscope.inspector.report import PeakMemory, Report, SourcePosition, UncountedCommunication
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.parsers.source import Source

from .by_hand import collective, finding, of_step, report, sharded, total
from .test_values_of_devices import divergence, probe, value

HLO = b"HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
ALONE = HLO.replace(b"HloModule m", b"HloModule m, num_partitions=4")
MLIR = b"""module @m {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    return %arg0 : tensor<f32>
  }
}
"""


def stage(name: str, data: bytes = HLO, **fields: Any) -> Stage:
    return Stage(name, "mlir" if name == "stablehlo" else "hlo", Source("text", data), **fields)


def captured(**fields: Any) -> Report:
    return report(capture=Capture(**fields))


def said(found: Report) -> list[tuple[str, str]]:
    return [(plain_text(cell), pieces(cell)[0].role) for cell in attention(found)]


def test_what_was_captured() -> None:
    subject = Subject("loss", "/code/fsdp.py", "cpu", "cpu", 8, "0.12.0")
    mesh = MeshSyntax((("data", 4), ("model", 2)))
    found = report(capture=Capture(subject=subject), meshes=(mesh,))
    script, name, devices, jax = subject_text(found).split(" · ")
    assert (script, name, jax) == ("fsdp.py:loss", "mesh data=4 model=2", "jax 0.12.0")
    assert "8" in devices
    other = captured(subject=Subject("loss", None, "cpu", "cpu", 8))
    assert subject_text(other) == f"loss · {devices}"
    assert subject_text(report()) == "nothing has run yet"
    script = Source("/code/fsdp.py", b"raise KeyError")
    assert subject_text(captured(script_text=script, failure=Failure("function", "KeyError", "script"))) == (
        "fsdp.py · stopped while running the script"
    )
    assert (
        subject_text(captured(failure=Failure("usage", "there is no file x.py", "import"))) == "there is no file x.py"
    )
    both = captured(stages=(stage("hlo"), Stage("stablehlo", "mlir", Source("a", MLIR))))
    assert subject_text(both) == "a, text"


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((4, 2), "a=4 b=2"),
        ((4, 1, 1), "a=4 b=1 c=1"),
        ((4, 1, 1, 1), "a=4 and 3 axes of size 1"),
        ((1, 2, 1, 1, 1, 3), "b=2 f=3 and 4 axes of size 1"),
        ((1, 1, 1), "a=1 b=1 c=1"),
        ((), "of one device"),
    ],
)
def test_axes_of_a_mesh(sizes: tuple[int, ...], text: str) -> None:
    """Axes of size 1 are counted where they are many beside others."""
    assert mesh_text(MeshSyntax(tuple(zip("abcdef", sizes, strict=False)))) == text


def uncounted(does: Any) -> UncountedCommunication:
    return UncountedCommunication("k", does, None, SourcePosition())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, ""),
        ({"peak": PeakMemory(0, 100)}, ""),
        ({"peak": PeakMemory(5, None)}, "memory 5 B per device"),
        ({"peak": PeakMemory(5, 100)}, "memory 5 B of 100 B per device"),
        ({"communication": (total(),)}, "48 B sent per device per step"),
        ({"communication": (total(),), "uncounted": (uncounted("copy"),)}, "at least 48 B sent per device per step"),
        ({"communication": (total(),), "uncounted": (uncounted("unknown"),)}, "at least 48 B sent per device per step"),
        ({"communication": (total(),), "uncounted": (uncounted("signal"),)}, "48 B sent per device per step"),
        ({"capture": Capture(stages=(stage("hlo", seconds=2.0),))}, "compiled in 2 s"),
        ({"capture": Capture(stages=(stage("hlo", seconds=0.0),))}, "compiled in 0 ns"),
        ({"capture": Capture(stages=(stage("stablehlo", MLIR, seconds=2.0),))}, ""),
        (
            {"capture": Capture(stages=(stage("hlo", b"?"),)), "communication": (total(),)},
            "at least 48 B sent per device per step",
        ),
        ({"cost": of_step()}, "est. 8 s per step on v5p, bound by communication"),
        ({"cost": of_step(unknown=("a",))}, "est. at least 8 s per step on v5p (not known: a)"),
    ],
)
def test_what_a_step_takes(fields: dict[str, Any], text: str) -> None:
    """A sum is a lower bound where a part of the program is not known, a signal has no bytes."""
    assert resources_text(report(**fields)) == text


@pytest.mark.parametrize(
    ("stages", "text"),
    [
        ([], ""),
        ([stage("hlo")], "No collectives."),
        ([stage("hlo", b"?")], "No collectives in what could be read."),
        ([stage("stablehlo", MLIR)], "No collectives are written in the function; it was not partitioned."),
        ([stage("hlo-spmd")], "No collectives after partitioning; the program was not compiled."),
        ([Stage("jaxpr", "jaxpr", Source("t", b"{ lambda ; . let  in () }"))], "Collectives: not known"),
    ],
)
def test_that_nothing_is_sent(stages: list[Stage], text: str) -> None:
    """Only as far as that is known, and only where there are none."""
    capture = Capture(stages=tuple(stages))
    assert nothing_sent(report(capture=capture)).startswith(text)
    assert bool(nothing_sent(report(capture=capture))) == bool(text)
    for fields in ({"communication": (total(),)}, {"uncounted": (uncounted("host"),)}):
        assert nothing_sent(report(capture=capture, **fields)) == ""
    failed = Capture(stages=tuple(stages), failure=Failure("function", "no", "lower"))
    assert nothing_sent(report(capture=failed)).startswith("" if "not known" in text else text)
    assert "not known" not in nothing_sent(report(capture=failed))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("a", "1 sharding differs from requested: a"),
        ("ab", "2 shardings differ from requested: a, b"),
        ("abc", "3 shardings differ from requested: a, b, c"),
        ("abcd", "4 shardings differ from requested: a, b, c and 1 more"),
        ("abcdef", "6 shardings differ from requested: a, b, c and 3 more"),
    ],
)
def test_shardings_that_differ(names: str, text: str) -> None:
    values = (*(sharded(name, agrees=False) for name in names), sharded("y"), sharded("z", agrees=None))
    assert said(report(shardings=values)) == [(text, "warning")]


def test_collectives_over_unknown_devices() -> None:
    """Without groups or pairs one is over all devices, however many the text says that there are."""
    over_all = collective(groups=())
    known = (collective(groups=((0, 1),)), collective(groups=(), pairs=((0, 1),)))
    (line,) = said(report(collectives=(over_all, *known, over_all)))
    assert line[0].startswith("sizes of 2 collectives over all devices are unknown")
    assert said(report(collectives=known)) == []
    assert said(report(capture=Capture(stages=(stage("hlo", ALONE),)), collectives=(over_all,))) == []


@pytest.mark.parametrize(("capacity", "fits"), [(None, None), (4, False), (5, True), (6, True)])
def test_memory_that_does_not_fit(capacity: int | None, fits: bool | None) -> None:
    found = report(peak=PeakMemory(5, capacity))
    assert said(found) == [("does not fit: 5 B of 4 B per device", "error")] * (fits is False)
    assert in_order(found) == ("fits in memory" if fits else "")


def test_values_that_differ_and_should_not() -> None:
    """Said here unless a finding says it; of copies of one part that differ, those of arguments always."""
    apart = (divergence(), divergence(value="w", axis="y"), divergence(value="u", is_first=False))
    diverging = ("declared equal on all devices, but values differ: v over x, w over y", "error")
    assert said(report(divergences=apart)) == [diverging]
    assert said(report(divergences=apart, findings=(finding(),))) == [diverging]
    assert said(report(divergences=apart, findings=(finding(), finding(severity="error")))) == []

    output, given = (value("ab", name, path=(), when=when) for when, name in (("output", "q"), ("argument", "p")))

    def with_probes(*probes: Any, **fields: Any) -> Report:
        return report(capture=Capture(probes=tuple(each.probe for each in probes)), probes=probes, **fields)

    copies = ("devices hold different copies of output q", "error")
    assert said(with_probes(output)) == [copies]
    assert said(with_probes(output, findings=(finding(),))) == [copies]
    assert said(with_probes(output, findings=(finding(severity="error"),))) == []
    assert said(with_probes(output, divergences=apart)) == [diverging]
    inputs = ("devices hold different copies of argument p", "error")
    assert said(with_probes(given, output)) == [inputs]
    assert said(with_probes(output, given, findings=(finding(severity="error"),))) == [inputs]
    assert said(with_probes(value("aa", path=(), when="output"))) == []


def test_what_was_not_compared() -> None:
    found = captured(reference=Reference(0, (), "randomness"), gradients=Gradients((), "no scalar"))
    assert said(found) == [
        ("not compared with a run on one device: randomness", "warning"),
        ("gradients not checked: no scalar", "warning"),
    ]
    assert in_order(found) == ""
    apart = captured(reference=Reference(4, (Apart((), "output", 0, (), (), 9.0),)))
    (line,) = said(apart)
    assert (line[0].startswith("1 of 4 values differs"), line[1]) == (True, "error")
    assert in_order(apart) == ""


def test_values_that_are_not_finite() -> None:
    """On synthetic inputs that may be due to the inputs."""
    outputs = tuple(
        OutputSummary(f"[{n}]['{name}']", "f32[]", None, non_finite=bad)
        for name, n, bad in (("a", 0, 1), ("b", 1, 0), ("c", 2, 3))
    )
    names = "[0]['a'], [2]['c']"
    assert said(captured(execution=Execution(outputs))) == [(f"not finite (NaN or infinity): {names}", "error")]
    made_up = captured(execution=Execution(outputs, seeded_inputs=True))
    assert said(made_up) == [(f"not finite (NaN or infinity) on synthetic inputs: {names}", "warning")]
    assert said(captured(execution=Execution(outputs[1:2]))) == []


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([], ""),
        ([sharded()], "1 requested sharding holds"),
        ([sharded(), sharded()], "2 requested shardings hold"),
        ([sharded(), sharded(agrees=None)], "1 requested sharding holds (1 not known)"),
        ([sharded(), sharded(agrees=None, requested=None)], "1 requested sharding holds"),
        ([sharded(), sharded(agrees=False)], ""),
        ([sharded(agrees=None)], ""),
    ],
)
def test_shardings_that_hold(values: list[Any], text: str) -> None:
    assert in_order(report(shardings=tuple(values))) == text


def test_devices_without_differences() -> None:
    compared = Compared(("e",), 0, ("x",), ())
    fine = "no unexpected differences between devices"
    assert in_order(captured(compared=(compared,))) == fine
    assert (
        in_order(captured(compared=(compared,), probed=Probed({}, {}, left_out=1200))) == f"{fine} (1,200 not compared)"
    )
    assert in_order(captured(compared=(compared,), probes=(probe("ab", path=()),))) == ""
    assert in_order(captured(probed=Probed({}, {}, left_out=3))) == ""
    assert in_order(report(capture=Capture(compared=(compared,)), divergences=(divergence(),))) == ""
    equal = captured(reference=Reference(40, ()), probed=Probed({}, {}, left_out=2))
    assert in_order(equal) == "40 values equal to a run on one device (2 not compared)"


@pytest.mark.parametrize(
    ("seconds", "seeded", "text"),
    [
        ((), False, "ran"),
        ((), True, "ran on synthetic inputs"),
        ((2.0,), False, "ran once, in 2 s"),
        ((2.0,), True, "ran once on synthetic inputs, in 2 s"),
        ((1.0, 5.0, 2.0), False, "ran 3 times, median 2 s"),
        ((1.0, 3.0), True, "ran 2 times on synthetic inputs, median 2 s"),
    ],
)
def test_runs(seconds: tuple[float, ...], seeded: bool, text: str) -> None:
    assert in_order(captured(execution=Execution((), seconds, seeded))) == text


def test_no_findings() -> None:
    """Only of what was captured to its end, and could be read."""
    assert in_order(captured(stages=(stage("hlo"),))) == "no findings"
    assert in_order(captured(stages=(stage("hlo"), stage("stablehlo", b"?")))) == "no findings in what could be read"
    assert in_order(captured(stages=(stage("hlo"),), failure=Failure("function", "no", "run"))) == ""
    assert in_order(report(capture=Capture(stages=(stage("hlo"),)), findings=(finding(),))) == ""


def test_gradients_that_were_checked() -> None:
    right = Derivative("f", "x", 1.0, 1.0, 1e-6, "/code/model.py", 7)
    wrong = Derivative("f", "x", 2.0, 1.0, 1e-6, "/code/model.py", 7)
    fine = captured(gradients=Gradients((right, right), left_out=3))
    assert in_order(fine) == "2 gradients equal to finite differences (3 not compared)"
    assert in_order(captured(gradients=Gradients((right, wrong)))) == ""
    assert in_order(captured(gradients=Gradients(()))) == ""
