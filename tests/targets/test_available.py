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


def by_kind(packages: dict[str, str], python: str = sys.executable) -> dict[str, Availability]:
    return {each.kind: each for each in availability(packages, python)}


def test_what_this_interpreter_has() -> None:
    packages = packages_of(sys.executable)
    assert packages["jax"] == importlib.metadata.version("jax")
    assert packages["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(parse_target(each.example) for each in availability(packages, sys.executable))


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


def test_gpus_are_of_their_maker(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's names of the devices begin with it."""
    monkeypatch.setattr(available, "_ptxas", lambda: "")
    found = by_kind({"jax": "0.12.0"})
    for kind, maker in (("gpu", "NVIDIA"), ("gpu (AMD)", "AMD")):
        chips = found[kind].chips
        assert parse_target(found[kind].example).chip in chips
        assert all(chip.kinds[0].startswith(maker) for chip in chips)
        assert all(chip.figure("flops") > 0 for chip in chips)
    amd = found["gpu (AMD)"]
    assert (amd.with_what, amd.missing) == ("", "jax-rocm7-plugin and ROCm")
    assert "'jax[rocm7-local]==0.12.0'" in amd.command
    there = by_kind({"jax": "0.12.0", "jax-rocm7-plugin": "0.12.0"})["gpu (AMD)"]
    assert there.with_what.startswith("jax-rocm7-plugin 0.12.0,")
    assert (there.missing, there.command) == ("", "")


def test_a_compiler_of_cuda_on_the_path_or_where_xla_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = {"jax": "0.12.0", "jax-cuda13-plugin": "0.12.0"}
    monkeypatch.setattr(available, "TOOLKITS", (str(tmp_path / "toolkit" / "ptxas"),))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert by_kind(packages)["gpu"].missing == "ptxas"
    for folder in ("toolkit", "path"):
        file = tmp_path / folder / "ptxas"
        file.parent.mkdir()
        file.touch(0o755)
        assert by_kind(packages)["gpu"].with_what == f"jax-cuda13-plugin 0.12.0, ptxas in {file.parent}"


def test_what_is_no_python(tmp_path: Path) -> None:
    with pytest.raises(ShardscopeError, match="does not run as a Python interpreter"):
        packages_of("/bin/ls")
    with pytest.raises(ShardscopeError, match="No such file"):
        packages_of(str(tmp_path / "none"))
