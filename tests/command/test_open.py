"""`shardscope open`: saved captures, texts and folders, without jax."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture

from tests.conftest import SampleCapture

from .conftest import Shardscope


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
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_a_saved_capture(shardscope: Shardscope, capture: Capture, tmp_path: Path, no_jax: dict[str, str]) -> None:
    """What is opened says what the run itself said."""
    saved = shardscope("run", "psum", "--format", "json", "--save", "psum.shardscope")
    again = opened(shardscope, "psum.shardscope", **no_jax)
    assert again == json.loads(saved.stdout)


@pytest.mark.parametrize("stage", ["hlo", "hlo-before", "stablehlo", "sdy"])
def test_a_single_text(
    shardscope: Shardscope, capture: Capture, tmp_path: Path, stage: str, no_jax: dict[str, str]
) -> None:
    found = capture.stage(stage)
    assert found is not None
    (tmp_path / "text").write_bytes(found.source.data)
    report = opened(shardscope, "text", **no_jax)
    (only,) = report["stages"]  # type: ignore[misc]
    assert only["name"] == stage
    assert only["problems"] == []


def test_standard_input(shardscope: Shardscope, capture: Capture) -> None:
    found = capture.stage("hlo")
    assert found is not None
    done = shardscope("open", "-", "--format", "json", input=found.source.data)
    report = json.loads(done.stdout)
    assert len(report["collectives"]) == found.source.text().count("channel_id=")


def test_a_folder_that_xla_dumped_to(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "from jax.sharding import PartitionSpec as P, NamedSharding, Mesh\n"
        "import numpy as np\n"
        "mesh = Mesh(np.array(jax.devices()), ('x',))\n"
        "spec = NamedSharding(mesh, P('x'))\n"
        "a = jax.device_put(jnp.ones(16), spec)\n"
        "jax.jit(lambda v: jnp.sum(v) * v)(a).block_until_ready()\n"
    )
    import os
    import subprocess
    import sys

    passes = "shardy-xla|spmd-partitioning"
    flags = f"--xla_force_host_platform_device_count=8 --xla_dump_to=dump --xla_dump_hlo_pass_re={passes}"
    subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=True,
        capture_output=True,
    )
    report = opened(shardscope, "dump")
    names = [stage["name"] for stage in report["stages"]]  # type: ignore[attr-defined]
    assert names == ["stablehlo", "sdy", "hlo-before", "hlo-spmd", "hlo"]
    (reduction,) = [c for c in report["collectives"] if c["stage"] == "hlo"]  # type: ignore[attr-defined]
    assert (reduction["kind"], reduction["axes"]) == ("all-reduce", ["x"])
    (message,) = report["messages"]  # type: ignore[misc]
    other = message["text"].split(": ")[1].split(", ")[0]
    assert opened(shardscope, "dump", "--module", other)["stages"] != report["stages"]
    assert shardscope("open", "dump", "--module", "nonsense").returncode == 2


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
    assert "none in what could be read" in shardscope("open", "cut", "--format", "text").stdout.decode()


@pytest.mark.parametrize("data", [b"ML\xefR\rMLIR23", b"\n\x0bjit__lambda\x12\x06main.1\x1a\xda\x02\n"])
def test_a_module_that_is_no_text(shardscope: Shardscope, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "binary").write_bytes(data)
    done = shardscope("open", "binary")
    assert done.returncode == 5
    assert "text" in done.stderr.decode().splitlines()[0]
