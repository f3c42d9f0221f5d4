"""The interpreter that captures, its packages and its environment: the user's with little added.

It is shardscope's own if that has JAX, else that of the active environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from ...parsers.errors import ShardscopeError
from ..targets.target import Target
from .children import run
from .model import CaptureError
from .protocol import bootstrap

DEFAULT_DEVICES = 8
"""Fake CPU devices to begin with: enough for most meshes, and quick to make."""

THREADS = 64
"""Threads of XLA for CPUs: with as many as devices, programs that a script runs ahead may take all and wait forever."""

TIMEOUT_S = 60.0
"""Seconds that an interpreter may take to say what it has."""

_COUNT_FLAG = "--xla_force_host_platform_device_count"
_COUNT = re.compile(rf"{_COUNT_FLAG}=(\d+)")


def user_devices(environment: Mapping[str, str]) -> int | None:
    """Return the number of CPU devices that the user's environment requests, if any; the last flag counts."""
    counts = _COUNT.findall(environment.get("XLA_FLAGS", ""))
    count = environment.get("JAX_NUM_CPU_DEVICES", "").strip()
    return int(count) if count.isdigit() else int(counts[-1]) if counts else None


def child_environment(environment: Mapping[str, str], target: Target, devices: int | None) -> dict[str, str]:
    """The user's environment, for a capture with `devices` fake CPU devices; None leaves their number alone.

    XLA_FLAGS are added to and not replaced, and the count is set there, not in JAX_NUM_CPU_DEVICES, which would win
    over what the script itself writes to XLA_FLAGS. A compilation that comes from the persistent cache writes no
    stages, so that cache is off; where it is on, it keeps all programs. XLA reads NPROC as the number of processors.
    libtpu takes a lock that only processes which use a TPU need.
    """
    changed = dict(environment) | {
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    if target.platform != "local":
        changed |= {"JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1", "NPROC": environment.get("NPROC", str(THREADS))}
        if devices is not None:
            changed["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {_COUNT_FLAG}={devices}".strip()
            if "JAX_NUM_CPU_DEVICES" in environment:
                changed["JAX_NUM_CPU_DEVICES"] = str(devices)
    if target.platform == "tpu":
        changed["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"
    return changed


def packages_of(interpreter: str) -> Mapping[str, str]:
    """The versions of the packages that matter, by name, in an interpreter.

    Raises:
        ShardscopeError: it cannot be asked.
    """
    command = bootstrap.command(interpreter, "main:list_packages")
    try:
        done = run(command, timeout=TIMEOUT_S)
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", None) or "it does not run as a Python interpreter"
        raise ShardscopeError(f"cannot list the packages of {interpreter}: {why}") from None
    return {str(name): str(version) for name, version in found.items()} if isinstance(found, dict) else {}


PROBE_S = 20.0

VENV_FOLDER = ".venv"

PROBE = "import sys; from importlib.util import find_spec; sys.exit(find_spec('jax') is None)"


class NoJaxError(CaptureError):
    """No interpreter has JAX: `message` lists those that were asked, `HINT` says what to do."""

    HINT = "pip install 'shardscope[jax]', or activate the environment that has JAX, or name it: --python PATH"

    def __init__(self, interpreters: Sequence[str]) -> None:
        self.message = f"no JAX found in {' or '.join(interpreters)}"
        super().__init__(f"{self.message}; {self.HINT}")


def interpreter_with_jax(python: str | None) -> str:
    """Return `python` if it is given, else the first interpreter with JAX: our own, or one of the active environment.

    Raises:
        NoJaxError: none of them has JAX.
    """
    if python is not None:
        return python
    if find_spec("jax") is not None:
        return sys.executable
    without = [sys.executable]
    for path in active_interpreters(os.environ):
        if path not in without:
            if _has_jax(path):
                return path
            without.append(path)
    raise NoJaxError(without)


def interpreter_text(path: str) -> str:
    """The path of an interpreter for headlines: relative to the working directory or to the home folder."""
    for folder, prefix in ((os.getcwd(), ""), (os.path.expanduser("~"), "~/")):
        if path.startswith(f"{folder}/"):
            return prefix + os.path.relpath(path, folder)
    return path


def active_interpreters(environment: Mapping[str, str]) -> Iterator[str]:
    """The interpreters that a user would expect: of the activated environment, of the project's, and on PATH."""
    folder = Path(os.path.abspath("."))
    named = [environment.get("VIRTUAL_ENV"), environment.get("UV_PROJECT_ENVIRONMENT")]
    above = [folder / VENV_FOLDER, *(parent / VENV_FOLDER for parent in folder.parents)]
    for root in (*named, *above, environment.get("CONDA_PREFIX")):
        path = folder / root / "bin" / "python" if root else None
        if path is not None and os.access(path, os.X_OK):
            yield str(path)
    for name in ("python", "python3"):
        if (found := shutil.which(name)) is not None:
            yield found


def _has_jax(path: str) -> bool:
    """Return whether an interpreter finds JAX; the working directory, where anything may lie, is not searched."""
    try:
        return run([path, "-P", "-c", PROBE], timeout=PROBE_S).status == 0
    except (OSError, subprocess.SubprocessError):
        return False
