"""`shardscope run`: what it prints, and how it exits."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from shardscope.inspector.capture.file import load
from shardscope.inspector.render.json import json_schema, resolved

from .conftest import Shardscope

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("rows", "columns"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
def product(a, b):
    print("hello from the script")
    return jnp.sin(a @ b)

def noisy(x):
    raise ValueError("what the script says itself")
"""

ARGUMENTS = ("--arg", "f32[8,16]@-,rows", "--arg", "f32[16,4]@rows")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_json_of_a_script(shardscope: Shardscope, script: Path) -> None:
    done = shardscope("run", "script.py:product", *ARGUMENTS, "--format", "json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    Draft202012Validator(json_schema()).validate(report)
    report = resolved(report)
    assert report["schema"] == "shardscope.report/2"
    assert report["subject"]["function"] == "product"
    assert report["subject"]["mesh"][0]["axes"] == [
        {"name": "rows", "size": 4, "type": "auto"},
        {"name": "columns", "size": 2, "type": "auto"},
    ]
    (reduction,) = [collective for collective in report["collectives"] if collective["stage"] == "hlo"]
    assert (reduction["kind"], reduction["axes"], reduction["origin"]) == ("all-reduce", ["rows"], "partitioner")
    assert reduction["groups"] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert reduction["bytes_in"] == 8 * 4 * 4
    assert reduction["source"]["line"] == 9
    assert [stage["name"] for stage in report["stages"]] == [
        "jaxpr", "stablehlo", "sdy", "hlo-before", "hlo-spmd", "hlo",
    ]  # fmt: skip
    assert report["execution"]["ran"]
    assert report["execution"]["seeded_inputs"]
    assert b"hello from the script" not in done.stdout + done.stderr


def test_text_of_a_sample(shardscope_process: Shardscope) -> None:
    done = shardscope_process("run", "matmul_reduce_scatter", "--no-live", "--details", "collectives")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert lines[0].startswith("matmul_reduce_scatter.py:matmul")
    (row,) = [line for line in lines if "reduce-scatter" in line and "matmul" in line and "→" in line]
    assert "f32[" in row
    assert "user" in row
    assert any(line.split()[:2] == ["100%", row.split()[0]] or "tensor parallelism" in line for line in lines)
    assert "\x1b" not in done.stdout.decode()


def test_a_jaxpr_alone_compiles_nothing(shardscope: Shardscope, script: Path, tmp_path: Path) -> None:
    done = shardscope("run", "script.py:product", *ARGUMENTS, "--stage", "jaxpr", "--save", "kept.shardscope")
    assert done.stdout.startswith(b"{ lambda ; ")
    assert b"= sin[" in done.stdout
    assert [stage.name for stage in load(tmp_path / "kept.shardscope").stages] == ["jaxpr"]
    both = shardscope("run", "script.py:product", "--stage", "hlo", "--target", "cpu", "--target", "tpu:v5p:2x2x1")
    assert (both.returncode, both.stdout) == (2, b"")
    failed = shardscope("run", "script.py:noisy", "--arg", "f32[8]", "--stage", "hlo")
    assert (failed.returncode, failed.stdout) == (3, b"")
    assert b"what the script says itself" in failed.stderr


def test_the_users_own_module_wins_over_a_sample(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "psum.py").write_text("def mine():\n    return 1.0\n")
    done = shardscope("run", "psum:mine", "--format", "json", "--no-live")
    assert json.loads(done.stdout)["subject"]["script"] == str(tmp_path / "psum.py")


@pytest.mark.once
def test_output_to_a_file(shardscope: Shardscope, tmp_path: Path) -> None:
    done = shardscope("run", "psum", "--no-live", "--format", "json", "-o", "report.json")
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads((tmp_path / "report.json").read_text())["complete"]
    assert shardscope("run", "psum", "--no-live", "-o", "no/such/folder").returncode == 2


@pytest.mark.once
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("script.py:noisy", "--arg", "f32[2]"), 3, "what the script says itself"),
        (("script.py:prodct", *ARGUMENTS), 2, "product"),
        (("script.py:product",), 2, "--arg"),
        (("nowhere.py:product",), 2, "nowhere.py"),
        (("script.py:product", *ARGUMENTS, "--devices", "2"), 2, "8"),
        (("script.py:product", *ARGUMENTS, "--target", "toaster"), 2, "toaster"),
    ],
)
def test_failures_are_told_and_exit_as_documented(
    shardscope: Shardscope, script: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = shardscope("run", *arguments, "--no-live")
    assert done.returncode == status
    assert words in done.stdout.decode()
    assert "shardscope/inspector" not in done.stdout.decode()
    assert done.stderr == b""


@pytest.mark.once
def test_a_process_that_dies(shardscope_process: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os\n\ndef fn():\n    os.abort()\n")
    done = shardscope_process("run", "dies.py:fn", "--format", "json")
    assert done.returncode == 4
    failure = json.loads(done.stdout)["failure"]
    assert failure["kind"] == "died"
    assert "SIGABRT" in failure["message"]


def test_usage_errors_of_the_command_itself(shardscope: Shardscope, shardscope_process: Shardscope) -> None:
    assert shardscope_process("run").returncode == 2
    assert shardscope("dance").returncode == 2
    assert shardscope("run", "psum", "--devices", "0").returncode == 2


def test_a_reader_that_goes_away_is_no_error(shardscope: Shardscope) -> None:
    import subprocess

    command = f"{sys.executable} -m shardscope samples | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stderr == b""
