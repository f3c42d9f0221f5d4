"""Options that cannot be meant: one line, status 2, and nothing is captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Shardscope


@pytest.mark.parametrize(
    "option",
    [
        *("--probe nothing", "--probe 1", "--probe all,none", "--probe="),
        *("--devices 0", "--devices -1", "--devices 100000", "--devices many", "--devices 99999999999999999999"),
        *("--timeout nan", "--timeout inf", "--timeout -1", "--timeout 0", "--timeout soon", "--timeout 1e999"),
        *("--iterations 0-", "--iterations -3", "--iterations x", "--window 1,,2"),
    ],
)
def test_refused(shardscope: Shardscope, tmp_path: Path, option: str) -> None:
    (tmp_path / "script.py").write_text("import pathlib; pathlib.Path(__file__).with_name('captured').touch()\n")
    done = shardscope("run", "script.py:fn", *option.replace(" ", "=").split())
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert option.split()[0].split("=")[0].encode() in done.stderr
    assert not (tmp_path / "captured").exists()


@pytest.mark.parametrize("setting", ["timeout = nan", "timeout = inf", "timeout = -1", "devices = 100000"])
def test_refused_in_settings(shardscope: Shardscope, tmp_path: Path, setting: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.shardscope]\n{setting}\n")
    done = shardscope("run", "psum")
    assert done.returncode == 2
    assert setting.split()[0].encode() in done.stderr


def test_ids_of_no_equation(shardscope: Shardscope) -> None:
    done = shardscope("run", "psum", "--probe", "0.0,7.31")
    assert done.returncode == 2
    assert b"the program has no equation 7.31" in done.stdout + done.stderr


def test_many_iterations_cost_nothing(shardscope: Shardscope) -> None:
    assert shardscope("run", "no.py:fn", "--iterations", "0-999999999").returncode == 2
