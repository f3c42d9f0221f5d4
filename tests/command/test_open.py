"""`shardscope open`: saved captures, texts and folders, without jax."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Failure
from shardscope.inspector.render.json import resolved

from tests.conftest import SampleCapture

from .conftest import Shardscope

pytestmark = pytest.mark.once


@pytest.fixture(scope="session")
def capture(sample: SampleCapture) -> Capture:
    return sample("fsdp_tp:grad")


@pytest.fixture
def no_jax(tmp_path: Path) -> dict[str, str]:
    """An environment in which importing jax or numpy fails."""
    poison = tmp_path / "poison"
    poison.mkdir()
    for name in ("jax", "jaxlib", "numpy"):
        (poison / f"{name}.py").write_text("raise ImportError('this must not be imported')\n")
    return {"PYTHONPATH": str(poison)}


def opened(shardscope: Shardscope, path: str, *arguments: str, **options: str) -> dict[str, Any]:
    done = shardscope("open", path, "--format", "json", *arguments, **options)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = resolved(json.loads(done.stdout))
    return report


def test_a_saved_capture(shardscope: Shardscope, shardscope_process: Shardscope, no_jax: dict[str, str]) -> None:
    """What is opened says what the run itself said."""
    saved = shardscope("run", "psum", "--format", "json", "--save", "psum.shardscope")
    again = opened(shardscope_process, "psum.shardscope", **no_jax)
    assert again == resolved(json.loads(saved.stdout))


@pytest.mark.parametrize("stage", ["hlo", "hlo-before", "stablehlo", "sdy"])
def test_a_single_text(
    shardscope_process: Shardscope, capture: Capture, tmp_path: Path, stage: str, no_jax: dict[str, str]
) -> None:
    found = capture.stage(stage)
    assert found is not None
    (tmp_path / "text").write_bytes(found.source.data)
    report = opened(shardscope_process, "text", **no_jax)
    (only,) = report["stages"]  # type: ignore[misc]
    assert only["name"] == stage
    assert only["problems"] == []


def test_one_stage_alone(shardscope: Shardscope, capture: Capture, tmp_path: Path) -> None:
    """Byte by byte what was recorded; in a file too, and with an exit status of its own where it is not there."""
    save(capture, tmp_path / "kept.shardscope")
    for stage in capture.stages:
        if stage.dialect != "jaxpr":
            assert shardscope("open", "kept.shardscope", "--stage", stage.name).stdout == stage.source.data
    assert b"shard_map" not in shardscope("open", "kept.shardscope", "--stage", "jaxpr", "-o", "kept.jaxpr").stdout
    assert b"{ lambda ;" in (tmp_path / "kept.jaxpr").read_bytes()
    (tmp_path / "only.hlo").write_bytes(next(each.source.data for each in capture.stages if each.name == "hlo"))
    missing = shardscope("open", "only.hlo", "--stage", "sdy")
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert b"recorded: hlo" in missing.stderr


def test_links(shardscope: Shardscope, capture: Capture, tmp_path: Path) -> None:
    """A row for each collective of the text, where its names stand; only in formats that have them."""
    save(capture, tmp_path / "kept.shardscope")
    compiled = next(each.source.text() for each in capture.stages if each.name == "hlo")
    parts = json.loads(shardscope("open", "kept.shardscope", "--links", "--format", "json").stdout)["parts"]
    assert len({part["collective"] for part in parts}) == compiled.count("channel_id=")
    text = shardscope("open", "kept.shardscope", "--links").stdout.decode()
    for part in parts:
        assert f"%{part['collective']} = " in compiled
        assert f"  {part['collective']}  " in text
        assert all(link["name"].split()[0] in text for link in part["links"])
    refused = shardscope("open", "kept.shardscope", "--links", "--format", "html")
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"text, json" in refused.stderr


def test_standard_input(shardscope_process: Shardscope, capture: Capture) -> None:
    found = capture.stage("hlo")
    assert found is not None
    done = shardscope_process("open", "-", "--format", "json", input=found.source.data)
    report = json.loads(done.stdout)
    assert len(report["collectives"]) == found.source.text().count("channel_id=")


OPEN = """\
module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(%arg0: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {?}]>}, \
%arg1: tensor<8xf32>) -> (tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
    %1 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {"b", ?}p2]> : tensor<16x64xf32>
    return %1 : tensor<16x64xf32>
  }
}
"""

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P, NamedSharding, Mesh
import numpy as np
mesh = Mesh(np.array(jax.devices()), ('x',))
spec = NamedSharding(mesh, P('x'))
a = jax.device_put(jnp.ones(16), spec)
def step(v):
    return jnp.sum(v) * v
lowered = jax.jit(step).lower(a)
print('as written:')
print(lowered.as_text(debug_info=True))
print('as compiled:')
print(lowered.compile().as_text())
print('loss 3.25')
"""


def printed(folder: Path, flags: str) -> bytes:
    """What the script prints, and the compiler with it."""
    (folder / "script.py").write_text(SCRIPT)
    flags = f"--xla_force_host_platform_device_count=8 {flags}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "script.py"]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True).stdout


def stages(report: dict[str, Any]) -> list[str]:
    return [stage["name"] for stage in report["stages"]]


def reductions(report: dict[str, Any]) -> list[Any]:
    """Kind, axes and line of the collectives that run."""
    found = [each for each in report["collectives"] if each["stage"] == "hlo"]
    return [(each["kind"], each["axes"], each["source"]["line"]) for each in found]


def test_a_folder_that_xla_dumped_to(shardscope: Shardscope, tmp_path: Path) -> None:
    printed(tmp_path, "--xla_dump_to=dump --xla_dump_hlo_pass_re=shardy-xla|spmd-partitioning")
    report = opened(shardscope, "dump")
    assert stages(report) == ["stablehlo", "sdy", "hlo-before", "hlo-spmd", "hlo"]
    assert reductions(report) == [("all-reduce", ["x"], 9)]
    (message,) = report["messages"]
    assert [each["name"] for each in report["passes"]] == ["spmd-partitioning"]
    other = message["text"].split(": ")[1].split(", ")[0]
    assert opened(shardscope, "dump", "--module", other)["stages"] != report["stages"]
    assert shardscope("open", "dump", "--module", "nonsense").returncode == 2


def test_what_xla_dumped_to_standard_output(shardscope: Shardscope, tmp_path: Path) -> None:
    text = printed(tmp_path, "--xla_dump_to=- --xla_dump_hlo_pass_re=spmd-partitioning").decode()
    (tmp_path / "log").write_text(text)
    name = next(word for word in text.split(".before_") if word.endswith("jit_step")).split()[-1]
    report = opened(shardscope, "log", "--module", name)
    assert stages(report) == ["hlo-before", "hlo-spmd", "hlo"]
    assert reductions(report) == [("all-reduce", ["x"] if "mesh['x'=8]" in text else None, 9)]
    assert not any(stage["problems"] for stage in report["stages"])
    assert shardscope("open", "log", "--module", "nonsense").returncode == 2


def test_modules_that_a_program_printed(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(printed(tmp_path, ""))
    report = opened(shardscope, "log")
    assert stages(report) == ["stablehlo", "hlo"]
    assert reductions(report) == [("all-reduce", ["x"], 9)]
    assert [message["text"] for message in report["messages"]] == ["of log, 3 lines outside of any module left out"]
    assert not any(stage["problems"] for stage in report["stages"])


def test_one_module_in_a_log_keeps_its_line_numbers(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step 1\nHloModule m\n\nENTRY %e {\n  %x = f32[] oops\n}\nloss 3.25\n")
    problems = opened(shardscope, "log")["stages"][0]["problems"]
    assert [problem["line"] for problem in problems] == [5]


def test_stablehlo_alone_shows_what_it_asks_for(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "open.mlir").write_text(OPEN)
    report = opened(shardscope, "open.mlir")
    assert {(each["role"], each["name"], each.get("requested"), each.get("spec")) for each in report["shardings"]} == {
        ("argument", "%arg0", "P(('a', …), P.UNCONSTRAINED, priorities=(1, None))", None),
        ("argument", "%arg1", None, None),
        ("output", "result 0", "P('a', None)", None),
        ("constraint", "", "P('a', ('b', …), priorities=(None, 2))", None),
    }
    text = shardscope("open", "open.mlir", "--format", "text").stdout.decode()
    assert "before propagation" in text
    assert "P('a', ('b', …), priorities=(None, 2))" in text
    (row,) = [line.split() for line in text.splitlines() if " %arg1 " in line]
    assert row[2] == "f32[8]"
    assert set(row[3:]) == {"?"}  # also its part on each device, which propagation decides


def test_what_cannot_be_read(shardscope: Shardscope, tmp_path: Path, capture: Capture) -> None:
    (tmp_path / "prose").write_text("once upon a time\n\x1b[31mred")
    done = shardscope("open", "prose")
    assert done.returncode == 5
    assert "prose:1:1" in done.stderr.decode()
    assert "^" in done.stderr.decode()
    assert "\x1b" not in done.stderr.decode()
    assert shardscope("open", "nowhere").returncode == 2
    (tmp_path / "empty").mkdir()
    assert shardscope("open", "empty").returncode == 2
    save(capture, tmp_path / "whole")
    (tmp_path / "half").write_bytes((tmp_path / "whole").read_bytes()[:4000])
    cut = shardscope("open", "half", "--format", "json")
    assert cut.returncode == 5
    assert not json.loads(cut.stdout)["complete"]


def test_escapes_in_a_dump_do_not_reach_the_terminal(shardscope: Shardscope, tmp_path: Path, capture: Capture) -> None:
    found = capture.stage("hlo")
    assert found is not None
    evil = found.source.data.replace(b"all_gather", b"\x1b[2J\xe2\x80\xaegather")
    (tmp_path / "evil").write_bytes(evil)
    done = shardscope("open", "evil", "--format", "text")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout.decode()
    assert "\u202e" not in done.stdout.decode()


def test_a_text_that_was_logged_and_cut_off(shardscope: Shardscope, tmp_path: Path, capture: Capture) -> None:
    """The prefix of its lines is left out, and said; what is missing is not said to be none."""
    found = capture.stage("hlo")
    assert found is not None
    text = found.source.text()
    lines = [f"I1121 18:36:31.{number:06} 7 dump.cc:55] {line}" for number, line in enumerate(text.splitlines())]
    (tmp_path / "log").write_text("\n".join(lines))
    whole = opened(shardscope, "log")
    assert whole["stages"][0]["problems"] == []
    assert len(whole["collectives"]) == text.count("channel_id=")
    assert "dump.cc:55" in whole["messages"][0]["text"]
    (tmp_path / "cut").write_text("\n".join(lines[: text[: text.index("ENTRY")].count("\n") + 2]))
    assert "No collectives in what could be read" in shardscope("open", "cut", "--format", "text").stdout.decode()


@pytest.mark.parametrize("data", [b"ML\xefR\rMLIR23", b"\n\x0bjit__lambda\x12\x06main.1\x1a\xda\x02\n"])
def test_a_module_that_is_no_text(shardscope: Shardscope, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "binary").write_bytes(data)
    done = shardscope("open", "binary")
    assert done.returncode == 5
    (line,) = done.stderr.decode().splitlines()
    assert "binary" in line
    assert "jaxlib" in line


@pytest.mark.parametrize("stage", ["hlo", "stablehlo"])
def test_a_text_without_its_end_is_no_success(
    shardscope: Shardscope, tmp_path: Path, capture: Capture, stage: str
) -> None:
    found = capture.stage(stage)
    assert found is not None
    whole = found.source.data
    (tmp_path / "whole").write_bytes(whole)
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    assert shardscope("open", "cut", "--format", "text").returncode == 0
    for option in (("--strict",), ("--fail-on", "error")):
        assert shardscope("open", "cut", "--format", "text", *option).returncode == 5
        assert shardscope("open", "whole", "--format", "text", *option).returncode in (0, 1)


@pytest.mark.parametrize("elsewhere", [("-o", "report"), ("--format", "html", "-o", "report"), ("--quiet",)])
def test_a_failure_is_told_where_the_report_is_not(
    shardscope: Shardscope, capture: Capture, tmp_path: Path, elsewhere: tuple[str, ...]
) -> None:
    failure = Failure("function", "ValueError: odd", "trace")
    save(replace(capture, stages=(), complete=False, failure=failure), tmp_path / "failed")
    done = shardscope("open", "failed", *elsewhere)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"shardscope: ValueError: odd\n")
    shown = shardscope("open", "failed")
    assert (shown.returncode, shown.stderr) == (3, b"")
    assert b"ValueError: odd" in shown.stdout
