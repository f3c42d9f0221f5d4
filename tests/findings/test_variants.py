"""Faults in many spellings, and what only looks like them: all of a file's functions in one capture."""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import WAITS, Capture, Device, Failure
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.findings.grounded import grounded
from shardscope.inspector.findings.rule import MAX_MESSAGE_CHARACTERS
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Finding, Fix, Report

from tests.findings.rewording import reword
from tests.findings.well_formed import assert_well_formed
from tests.sweeps import sampled

pytestmark = pytest.mark.skipif(
    jax.__version_info__ < (0, 10), reason="with older JAX some spellings are not found: their jaxprs are others"
)

PROGRAMS = Path(__file__).parent / "programs"


def expected_of(file: str, platform: str = "cpu") -> dict[str, set[str]]:
    """What each registered function is to be found by: `@programs.found_by("SS01", gpu="")`."""
    found = {}
    for node in ast.parse((PROGRAMS / f"{file}.py").read_bytes()).body:
        for decorator in getattr(node, "decorator_list", ()):
            match node, decorator:
                case ast.FunctionDef(name=name), ast.Call(func=ast.Attribute(attr="found_by"), args=rules):
                    on = {each.arg: ast.literal_eval(each.value).split() for each in decorator.keywords}
                    found[name] = set(on.get(platform, map(ast.literal_eval, rules)))
    return found


def captured(file: str, function: str, *, target: str = "cpu", live: bool = False) -> Capture:
    return _captured(file, function, target, live)


@cache
def _captured(file: str, function: str, target: str, live: bool) -> Capture:
    last = last_capture(Request(f"{PROGRAMS / file}.py:{function}", target=target, live=live))
    assert last.complete, last.failure
    return last


def program_of(file: str, target: str = "cpu") -> Report:
    """The report on all of a file's functions."""
    return _program_of(file, target)


@cache  # of f(x) and f(x, "cpu") it would make two
def _program_of(file: str, target: str) -> Report:
    return inspect(captured(file, "program", target=target))


def wrong(report: Report) -> list[Finding]:
    """What is found, but for what is no fault: all that the partitioner inserts is listed as SS23."""
    return [finding for finding in report.findings if finding.rule != "SS23"]


def found_in(file: str, target: str = "cpu") -> dict[str, list[Finding]]:
    """The findings by the registered functions in whose lines they are: of what a compiler combined, in all of them."""
    tree = ast.parse((PROGRAMS / f"{file}.py").read_bytes())
    lines = {
        line: node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in expected_of(file)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    found: dict[str, list[Finding]] = {name: [] for name in expected_of(file)}
    for finding in wrong(program_of(file, target)):
        stacks = [each.source.stack for each in (finding.place, *finding.related)]
        named = [[lines[frame.line] for frame in stack if frame.line in lines][:1] for stack in stacks]
        for name in dict.fromkeys(name for names in named for name in names) or ("elsewhere",):
            found.setdefault(name, []).append(finding)
    return found


TPU, GPU = "tpu:v5p:2x2x2", "gpu:h100:8"
libtpu = pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed")
cuda = pytest.mark.skipif(
    importlib.util.find_spec("jax_cuda13_plugin") is None or importlib.util.find_spec("nvidia.cu13") is None,
    reason="JAX's plugin for NVIDIA, or what it compiles with, is not installed",
)
everywhere = pytest.mark.parametrize(
    "target", ["cpu", pytest.param(TPU, marks=libtpu), pytest.param(GPU, marks=cuda)], ids=["cpu", "tpu", "gpu"]
)

FILES = ("own_blocks", "scattered", "detours", "backward", "reductions", "faults", "narrow", "gathers", "loops")


on_their_targets = pytest.mark.parametrize(
    ("file", "target"),
    [
        *sampled([pytest.param(file, "cpu", id=f"{file}-cpu") for file in FILES], 9, 3),
        *sampled([pytest.param(file, TPU, id=f"{file}-tpu", marks=libtpu) for file in FILES], 3),
        *sampled([pytest.param(file, GPU, id=f"{file}-gpu", marks=cuda) for file in FILES], 3),
    ],
)
"""Every file on CPUs, some for other targets."""


@on_their_targets
def test_variants(file: str, target: str) -> None:
    found = {name: {each.rule for each in findings} for name, findings in found_in(file, target).items()}
    assert found == expected_of(file, target.partition(":")[0])


@pytest.mark.once
@pytest.mark.parametrize("file", FILES)
def test_messages_stand_alone(file: str) -> None:
    """In at most 100 characters, none of which had to be cut off: no reference to other lines, no two sentences."""
    report = program_of(file)
    assert_well_formed(report)
    for each in report.findings:
        assert len(each.message) <= MAX_MESSAGE_CHARACTERS
        assert not each.message.endswith(("…", "."))
        assert not re.search(r"\b(cut|cuts|whole|told|stands|nobody|for ever)\b", each.message), each.message


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("scaled", "lax.psum_scatter(differing(a), 'x', scatter_dimension=0, tiled=True)"),
        ("one_of_two", "lax.psum(lax.psum_scatter(differing(a), 'y', scatter_dimension=0, tiled=True), ('x',))"),
        ("transposed", "lax.psum_scatter(differing(a), 'x', scatter_dimension=0, tiled=True)"),
        ("gathered", "use differing(a) itself"),
        ("exchanged", "lax.all_to_all(differing(a), 'x', split_axis=0, concat_axis=1, tiled=True)"),
    ],
)
def test_fixes_are_in_the_users_names(name: str, fix: str) -> None:
    ((finding,),) = (findings for function, findings in found_in("own_blocks").items() if function == name)
    assert any(each.title.startswith(fix) for each in finding.fixes)


def test_names_that_the_source_does_not_have_are_in_no_fix() -> None:
    report = program_of("own_blocks")
    ((finding,),) = (findings for function, findings in found_in("own_blocks").items() if function == "scaled")
    known = ["lax.psum(differing(a), 'x')", "differing(a), all of it", "shard it as P('x')", "see (nothing)", "a's own"]
    known += ["by [(i, (i + 2) % 4) for i in range(4)]", "lax.all_gather(…, to='invarying')"]
    unknown = ["lax.psum(differing(b2), 'x')", "lax.psum(a, 'tp')", "differing(weights['w'])", "have <lambda> make it"]
    given = replace(finding, fixes=tuple(map(Fix, (*known, *unknown))))
    assert [fix.title for fix in next(grounded(report, [given])).fixes] == known


def test_a_mean_by_hand_goes_with_its_division() -> None:
    """Without the sum alone, the value would be a quarter of what it was."""
    ((finding,),) = (findings for function, findings in found_in("reductions").items() if function == "a_mean_by_hand")
    assert finding.severity == "warning"
    assert finding.message.endswith("its sum divided by 4 is the value itself")
    (edit,) = finding.fixes[0].edits
    assert edit.text == "(w + 3)"


@pytest.mark.once
@on_their_targets
def test_no_fix_is_read_from_words(file: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all sentences of all rules in another alphabet the same faults have the same edits."""
    plain = program_of(file, target).findings
    reword(monkeypatch)
    reworded = inspect(captured(file, "program", target=target)).findings
    assert [_done(each) for each in reworded] == [_done(each) for each in plain]
    said = [text for each in reworded for text in (each.message, each.place.what, *(fix.title for fix in each.fixes))]
    assert not re.search("[a-z]", "".join(said))


def _done(found: Finding) -> tuple[object, ...]:
    """All of a finding that no person reads."""
    places = [(place.source, place.stage, place.span) for place in (found.place, *found.related)]
    edits = [fix.edits for fix in found.fixes]
    return (found.rule, found.severity, found.confidence, found.axes, places, edits, found.saved_bytes)


@pytest.mark.parametrize(
    ("function", "expected"),
    [("left_out", ["SS06"]), ("summed", []), ("returned", ["SS06"]), ("named", []), ("along_one", [])],
)
def test_unchecked_out_specs(function: str, expected: list[str]) -> None:
    assert [found.rule for found in wrong(inspect(captured("unchecked", function, live=True)))] == expected


@everywhere
def test_unchecked_out_specs_without_a_run(target: str) -> None:
    """The run of each, on CPUs, says which are wrong."""
    found = found_in("unchecked", target)
    assert {name: {each.rule for each in every} for name, every in found.items()} == expected_of("unchecked")
    differing = {each.source.line for each in inspect(captured("unchecked", "program", live=True)).divergences}
    assert differing == {each.place.source.line for every in found.values() for each in every}


@everywhere
@pytest.mark.parametrize(
    ("function", "expected"),
    [("donated", [("SS20", "a")]), ("used", []), ("replicated", [("SS12", "table")]), ("cut", [])],
)
def test_whole_functions(function: str, expected: list[tuple[str, str]], target: str) -> None:
    report = inspect(captured("faults", function, target=target))
    assert [(found.rule, found.place.what) for found in wrong(report)] == expected


on_slow_links = pytest.mark.parametrize(
    ("function", "expected"),
    [("across", ["SS17", "SS18"]), ("inside", ["SS18"]), ("alone", ["SS29", "SS33"])],
)


@on_slow_links
def test_slow_links(function: str, expected: list[str]) -> None:
    """The same program, on devices that are said to be two nodes of four GPUs."""
    program = captured("slices", function)
    assert program.subject is not None
    devices = tuple(Device(number, (), slice=number // 4, process=number // 4) for number in range(8))
    there = replace(program, subject=replace(program.subject, device_kind="NVIDIA H100 80GB HBM3", devices=devices))
    assert [found.rule for found in wrong(inspect(there))] == expected


@pytest.mark.parametrize(
    "target", sampled([pytest.param("tpu:v5p:2x2x1*2", marks=libtpu), pytest.param("gpu:h100:4x2", marks=cuda)], 1)
)
@pytest.mark.parametrize(
    ("function", "expected"),
    sampled([("across", ["SS17", "SS18"]), ("inside", ["SS18"]), ("alone", ["SS29", "SS33"])], 1),
)
def test_slow_links_of_targets(function: str, expected: list[str], target: str) -> None:
    """Two slices, and two nodes: as their compilers make it."""
    assert [found.rule for found in wrong(inspect(captured("slices", function, target=target)))] == expected


@libtpu
def test_what_the_target_makes_of_it_decides() -> None:
    """A TPU's compiler leaves in the loop what the CPU's gathers before."""
    there = found_in("faults", TPU)
    assert [(each.rule, each.severity) for each in there["gathered_each_time"]] == [("SS08", "warning")]
    assert [each.severity for each in found_in("faults")["gathered_each_time"]] == ["info"]
    assert all(each.saved_seconds for each in there["gathered_each_time"])


def test_where_devices_part_is_proved_if_no_data_decides_it() -> None:
    found = found_in("faults")
    assert [each.confidence for each in found["half_of_them_sum"]] == ["likely"]
    (proved,) = found["the_first_one_sums"]
    assert proved.confidence == "proved"
    assert dict(proved.evidence)["devices along x"] == "1, 2, 3: branch 0; 0: branch 1"


def test_a_run_that_waited_for_ever_is_proof() -> None:
    said = "devices wait for each other forever: 0 in all-reduce at faults.py:3; 1–3 have ended"
    program = captured("faults", "program", target="cpu")
    stuck = replace(program, failure=Failure("function", said, "run", type=WAITS))
    found = [each for each in inspect(stuck).findings if each.rule == "SS21"]
    assert {each.confidence for each in found} == {"proved"}
    assert all(dict(each.evidence)["in the run"] == said for each in found)
