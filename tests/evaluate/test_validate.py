"""A compiled sample: equal as it is, and different where a collective is taken out of it."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.events import decode
from shardscope.inspector.capture.protocol.case import OPTIMIZED, PASSES, SOURCE
from shardscope.inspector.capture.protocol.events import frame_of
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.validation import evaluated
from shardscope.inspector.evaluate.validate import validate
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


def test_a_check(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardscope", "check", f"{SAMPLE}:loss", "--validate"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "optimized program equals the source on 8 devices" in done.stdout
