"""The environment of the capturing process: the user's with little added; and the packages that are there."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping

from ...parsers.errors import ShardscopeError
from ..targets.target import Target
from .guardian import run
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
    stages, so that cache is off. XLA reads NPROC as the number of processors. libtpu takes a lock that only processes
    which use a TPU need.
    """
    changed = dict(environment) | {"JAX_ENABLE_COMPILATION_CACHE": "false"}
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
