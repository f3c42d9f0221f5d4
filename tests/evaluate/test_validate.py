"""A compiled sample: equal as it is, and different where a collective is taken out of it."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture import validation
from shardscope.inspector.capture.events import decode
from shardscope.inspector.capture.model import Capture, Stage, Subject
from shardscope.inspector.capture.protocol.case import INPUTS, OPTIMIZED, PASSES, PROGRAM, SOURCE
from shardscope.inspector.capture.protocol.events import frame_of
from shardscope.inspector.capture.protocol.values import (
    ComparedOutput,
    DifferingInstruction,
    DifferingPass,
    Validation,
)
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.validation import begin_validated, evaluated, keep
from shardscope.inspector.evaluate.validate import validate
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.validation import validation_lines
from shardscope.parsers.source import Source
from shardscope.samples.catalogue import samples

pytestmark = pytest.mark.once

SAMPLE = next(str(sample.path) for sample in samples() if sample.name == "data_parallel")
REDUCED = re.compile(r"^(  (?:ROOT )?%(\S+) = .*?) all-reduce\((.*?)\), (?:channel|replica).*$", re.MULTILINE)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("case")
    request = Request(f"{SAMPLE}:grad", target="cpu", live=False, probe="none", case=str(folder))
    assert last_capture(request).complete
    return folder


@pytest.fixture
def case(compiled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiled, tmp_path / "case"))


def test_the_compiled_program_is_the_same(case: Path) -> None:
    found = validate(case, 60)
    assert (found.status, found.reason) == ("same", "")
    assert found.devices == 8
    assert found.outputs
    assert found.error < 1e-12


def without_first_reduction(text: str) -> tuple[str, str]:
    match = REDUCED.search(text)
    assert match is not None
    opcode = "tuple" if "," in match[3] else "copy"
    return text[: match.start()] + f"{match[1]} {opcode}({match[3]})" + text[match.end() :], match[2]


def test_a_lost_reduction_is_found_with_its_pass_and_instruction(case: Path) -> None:
    right = (case / OPTIMIZED).read_text()
    wrong, name = without_first_reduction(right)
    (case / OPTIMIZED).write_text(wrong)
    (case / PASSES).mkdir()
    texts = [right, right + "\n", wrong, wrong + "\n"]
    for number, (text, passed) in enumerate(zip(texts, ("start", "good", "bad", "later"), strict=True)):
        (case / PASSES / f"module_0001.m.{number:04}.pipe.after_{passed}.before_next.txt").write_text(text)
    found = validate(case, 60)
    assert found.status == "differs"
    assert any(output.devices for output in found.outputs)
    assert found.differing_pass is not None
    assert (found.differing_pass.name, found.differing_pass.previous) == ("bad", "good")
    assert found.first is not None
    assert found.first.name == f"%{name}"


def in_a_branch(text: str) -> str:
    """The module in which only device 0 reaches the first reduction."""
    match = REDUCED.search(text)
    assert match is not None
    _, _, typed = match[1].partition(" = ")
    operand = match[3].partition(", ")[0]
    reduction = match[0].strip().removeprefix("ROOT ").replace(f"%{match[2]} =", "ROOT %in_branch =", 1)
    reduction = reduction.replace(match[3], "%branch_operand", 1).partition(", metadata=")[0]
    branches = (
        f"%reducing (branch_operand: {typed}) -> {typed} {{\n  %branch_operand = {typed} parameter(0)\n"
        f"  {reduction}\n}}\n\n"
        f"%other (other_operand: {typed}) -> {typed} {{\n  ROOT %other_operand = {typed} parameter(0)\n}}\n\n"
    )
    chosen = (
        "  %branch_id = u32[] partition-id()\n  %branch_zero = u32[] constant(0)\n"
        "  %is_first = pred[] compare(%branch_id, %branch_zero), direction=EQ\n"
        f"{match[1]} conditional(%is_first, {operand}, {operand}), true_computation=%reducing, false_computation=%other"
    )
    text = text[: match.start()] + chosen + text[match.end() :]
    return text.replace("\nENTRY ", f"\n{branches}ENTRY ", 1)


def test_a_reduction_that_one_device_reaches_never_ends(case: Path) -> None:
    right = (case / OPTIMIZED).read_text()
    wrong = in_a_branch(right)
    (case / OPTIMIZED).write_text(wrong)
    (case / PASSES).mkdir()
    for number, (text, passed) in enumerate(((right, "good"), (wrong, "bad"))):
        (case / PASSES / f"module_0001.m.{number:04}.pipe.after_{passed}.before_next.txt").write_text(text)
    found, _ = evaluated(case, 60)
    assert (found.status, found.program, found.outputs) == ("differs", "optimized program", ())
    assert "devices [1, 2, 3, 4, 5, 6, 7] do not take part" in found.reason
    assert found.differing_pass is not None
    assert found.differing_pass.name == "bad"
    assert next(iter(validation_lines(found))).text.startswith("optimized program never ends, which its source does: ")
    (error,) = (each for each in inspect(Capture(complete=True, validation=found)).findings if each.rule == "SS31")
    assert error.message.startswith("the compiled program never ends after the pass bad: all-reduce")


def test_memory_that_nothing_wrote_is_an_infinite_difference(case: Path) -> None:
    text = (case / OPTIMIZED).read_text()
    match = REDUCED.search(text)
    assert match is not None
    unwritten = f'{match[1]} custom-call(), custom_call_target="AllocateBuffer"'
    (case / OPTIMIZED).write_text(text[: match.start()] + unwritten + text[match.end() :])
    found, _ = evaluated(case, 60)
    assert (found.status, found.reason, found.error) == ("differs", "", math.inf)
    assert decode(frame_of(found)) == found


def test_a_program_that_cannot_be_evaluated_is_not_guessed(case: Path) -> None:
    text = (case / SOURCE).read_text()
    (case / SOURCE).write_text(re.sub(r" dot\(", " quux(", text, count=1))
    found = validate(case, 60)
    assert (found.status, found.reason, found.program) == ("not evaluated", "opcode quux", "source")
    assert "data_parallel.py:" in found.place


def test_the_time_is_limited(case: Path) -> None:
    assert validate(case, 0).reason.startswith("not evaluated to its end")


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardscope", "validate", f"{SAMPLE}:loss", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["validation"]
    assert (found["status"], found["pass"]) == ("same", None)


def test_integers_of_python_and_numpy_have_the_bits_of_the_program(tmp_path: Path) -> None:
    script = tmp_path / "seeds.py"
    script.write_text(
        "import jax, numpy as np\n"
        "@jax.jit\n"
        "def draw(seed, shift):\n"
        "    return jax.random.bits(jax.random.key(seed), (4,)) >> shift, seed * seed\n"
        "draw(70_000, np.int64(3))\n"
    )
    request = Request(f"{script}:draw", target="cpu", live=False, probe="none", case=str(tmp_path / "case"))
    assert last_capture(request).complete
    found = validate(tmp_path / "case", 60)
    assert (found.status, found.reason, found.error) == ("same", "", 0.0)


def test_a_check(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardscope", "check", f"{SAMPLE}:loss", "--validate"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "optimized program equals the source on 8 devices" in done.stdout


@pytest.mark.parametrize("has_pass", [True, False])
@pytest.mark.parametrize("reduced", ["", "5 instructions"])
def test_what_is_kept_of_a_case_that_differs(tmp_path: Path, has_pass: bool, reduced: str) -> None:
    """The files of the case, of the passes only those before and after the first that differs, and how to read them."""
    folder, kept = tmp_path / "case", tmp_path / "new" / "kept"
    (folder / PASSES).mkdir(parents=True)
    case = {SOURCE, OPTIMIZED, PROGRAM, INPUTS}
    names = [f"module_0001.m.{number:04}.pipe.after_{number}.before_next.txt" for number in range(4)]
    for name in (*case, *(f"{PASSES}/{each}" for each in names)):
        (folder / name).write_text(name)
    found = DifferingPass("pipe", "folding", "good", 4, 3, names[1], names[2]) if has_pass else None
    outputs = ComparedOutput("loss", (8,), 0.25, (0, 3), 5), ComparedOutput("equal", (8,), 0.0)
    first = DifferingInstruction("%dot.1", "dot", "step.py:12") if has_pass else None
    differing = Validation("differs", 4, 0.25, outputs, found, first)
    captured = Capture(
        subject=Subject("step.py:step", None, "tpu:v5e:4", "tpu", 4, "0.12.0", "0.12.1"),
        stages=(Stage("stablehlo", "stablehlo", Source("stablehlo", b"module {}"), 0.0),),
    )
    assert keep(folder, kept, captured, differing, reduced) == str(kept)
    written = {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
    passes = {f"{PASSES}/{each}" for each in names[1:3]} if has_pass else set()
    assert written == case | passes | {"validation.json", "README.md"} | (
        set() if reduced else {"source.stablehlo.mlir"}
    )
    assert all((kept / name).read_text() == name for name in case | passes)
    assert json.loads((kept / "validation.json").read_text())["error"] == 0.25
    text = (kept / "README.md").read_text()
    assert text.startswith("# step.py:step on tpu:v5e:4 ")
    assert "\nJAX 0.12.0, jaxlib 0.12.1, compiler version unknown\n" in text
    assert "\n- loss: 5 elements on 2 devices\n" in text
    assert "- equal" not in text
    assert ("First pass after which they differ: folding (pipe)" in text) is has_pass
    assert ("First instruction that differs: %dot.1 step.py:12" in text) is has_pass
    assert ("\nReduced: 5 instructions\n" in text) is bool(reduced)


@pytest.mark.parametrize(
    ("complete", "is_cancelled", "statuses", "captures"),
    [
        (False, False, [], 1),
        (True, True, [], 1),
        (True, False, ["same"], 1),
        (True, False, ["not evaluated"], 1),
        (True, False, ["differs", "differs"], 2),
    ],
)
def test_a_capture_is_validated_when_it_is_complete(
    complete: bool, is_cancelled: bool, statuses: list[str], captures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once more with the modules after all passes where it differs."""
    requests: list[Request] = []
    waiting = list(statuses)

    def capture(request: Request, cancellation: Any) -> Iterator[Capture]:
        requests.append(request)
        yield Capture()
        if is_cancelled:
            cancellation.cancel()
        yield Capture(complete=complete)

    monkeypatch.setattr(validation, "capture", capture)
    monkeypatch.setattr(validation, "evaluated", lambda *_: (Validation(waiting.pop(0)), ()))
    *before, last = begin_validated(Request("step.py:step"), 60).captures
    assert waiting == []
    assert len(requests) == captures
    assert all(each.case for each in requests)
    assert [(each.case_passes, each.live) for each in requests] == [(False, True), (True, False)][:captures]
    phases = [each.progress.phase for each in (*before, last) if each.progress is not None]
    assert phases == ["evaluate"] * bool(statuses)
    assert not any(each.complete for each in before)
    assert (last.validation and last.validation.status) == (statuses[-1] if statuses else None)
    assert ("evaluate" in last.timings) == bool(statuses)
