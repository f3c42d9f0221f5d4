"""The Python interpreter that captures: shardscope's own if it has JAX, else that of the active environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from .guardian import run
from .model import CaptureError

TIMEOUT_S = 20.0

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
        return run([path, "-P", "-c", PROBE], timeout=TIMEOUT_S).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
