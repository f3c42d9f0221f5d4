"""Targets that an interpreter can compile for, and what it lacks for the others."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping

from ...parsers.record import Record
from .chips import Chip, chips_of
from .target import SHAPES

TOOLKITS = ("/usr/local/cuda/bin/ptxas", "/opt/cuda/bin/ptxas")
"""Folders in which XLA looks for a CUDA toolkit that is not on PATH (xla/tsl/platform/default/cuda_root_path.cc)."""


class Availability(Record, frozen=True):
    """The availability of one kind of target.

    `with_what` names the packages that do it; `missing` says what is not there, and `command` installs it; both are
    empty where nothing is missing.
    """

    kind: str
    example: str
    chips: tuple[Chip, ...] = ()
    with_what: str = ""
    missing: str = ""
    command: str = ""


def availability(packages: Mapping[str, str], python: str) -> tuple[Availability, ...]:
    """Return the targets that these packages can compile for."""
    if "jax" not in packages:
        none = f"Python {packages.get('python', '?')} there has no jax"
        return (Availability("cpu", "cpu:8", missing=none, command=_install(python, "jax")),)
    return (
        Availability("cpu", "cpu:8", with_what=f"jax {packages['jax']}"),
        Availability("local", "local", with_what="whatever devices JAX finds"),
        _tpu(packages, python),
        _cuda(packages, python),
        _rocm(packages, python),
    )


def _tpu(packages: Mapping[str, str], python: str) -> Availability:
    chips = tuple(chips_of("tpu").values())
    example = f"tpu:v5p:{SHAPES['tpu']}"
    if "libtpu" in packages:
        return Availability("tpu", example, chips, with_what=f"libtpu {packages['libtpu']}")
    return Availability(
        "tpu", example, chips, missing="libtpu", command=_install(python, f"jax[tpu]=={packages['jax']}")
    )


def _cuda(packages: Mapping[str, str], python: str) -> Availability:
    chips = tuple(chip for chip in chips_of("gpu").values() if chip.text("platform_name") == "CUDA")
    example = f"gpu:h100:{SHAPES['gpu']}"
    plugin = _newest(packages, r"jax-cuda\d+-plugin")
    compiler = _ptxas() or _newest(packages, r"nvidia-cuda-nvcc(-cu\d+)?")
    missing = [name for name, there in (("jax-cuda13-plugin", plugin), ("ptxas", compiler)) if not there]
    if not missing:
        return Availability("gpu", example, chips, with_what=f"{plugin}, {compiler}")
    # Pinned: JAX loads only the plugin of its own version.
    command = _install(python, f"jax[cuda13-local]=={packages['jax']}", "nvidia-cuda-nvcc", "nvidia-nvvm")
    return Availability("gpu", example, chips, missing=" and ".join(missing), command=command)


def _rocm(packages: Mapping[str, str], python: str) -> Availability:
    chips = tuple(chip for chip in chips_of("gpu").values() if chip.text("platform_name") == "ROCM")
    example = f"gpu:mi300x:{SHAPES['gpu']}"
    if plugin := _newest(packages, r"jax-rocm\d+-plugin"):
        return Availability("gpu (AMD)", example, chips, f"{plugin}, where the libraries of ROCm are installed")
    command = _install(python, f"jax[rocm7-local]=={packages['jax']}")
    return Availability("gpu (AMD)", example, chips, missing="jax-rocm7-plugin and ROCm", command=command)


def _newest(packages: Mapping[str, str], pattern: str) -> str:
    found = sorted(name for name in packages if re.fullmatch(pattern, name))
    return f"{found[-1]} {packages[found[-1]]}" if found else ""


def _ptxas() -> str:
    path = shutil.which("ptxas") or next((place for place in TOOLKITS if os.access(place, os.X_OK)), None)
    return f"ptxas in {os.path.dirname(path)}" if path else ""


def _install(python: str, *wanted: str) -> str:
    return shlex.join([python, "-m", "pip", "install", *wanted])
