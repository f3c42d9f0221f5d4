"""What is said to be installed, and what to install."""

from __future__ import annotations

import importlib.metadata
import shlex
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.environment import packages_of
from shardscope.inspector.targets import available
from shardscope.inspector.targets.available import Availability, availability
from shardscope.inspector.targets.target import parse_target
from shardscope.parsers.errors import ShardscopeError


def by_kind(packages: dict[str, str], python: str | None = None) -> dict[str, Availability]:
    return {each.kind: each for each in availability(packages, python)}


def test_what_this_interpreter_has() -> None:
    packages = packages_of(None)
    assert packages["jax"] == importlib.metadata.version("jax")
    assert packages["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(parse_target(each.example) for each in availability(packages, None))


def test_nothing_is_there() -> None:
    (only,) = availability({"python": "3.12.1"}, "/usr/bin/python3")
    assert only.missing == "Python 3.12.1 there has no jax"
    assert only.command == "/usr/bin/python3 -m pip install jax"


def test_what_to_install_is_of_the_version_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "_ptxas", lambda: "")
    found = by_kind({"jax": "0.12.0", "python": "3.13.0"}, "/other/python")
    assert found["tpu"].missing == "libtpu"
    assert shlex.split(found["tpu"].command) == ["/other/python", "-m", "pip", "install", "jax[tpu]==0.12.0"]
    assert found["gpu"].missing == "jax-cuda13-plugin and ptxas"
    assert "'jax[cuda13-local]==0.12.0' nvidia-cuda-nvcc nvidia-nvvm" in found["gpu"].command
    there = by_kind({"jax": "0.12.0", "libtpu": "0.0.51", "jax-cuda12-plugin": "0.12.0", "nvidia-cuda-nvcc": "13.5"})
    assert not there["tpu"].missing
    assert there["gpu"].with_what == "jax-cuda12-plugin 0.12.0, nvidia-cuda-nvcc 13.5"


def test_what_is_no_python(tmp_path: Path) -> None:
    with pytest.raises(ShardscopeError, match="does not run as a Python interpreter"):
        packages_of("/bin/ls")
    with pytest.raises(ShardscopeError, match="No such file"):
        packages_of(str(tmp_path / "none"))
