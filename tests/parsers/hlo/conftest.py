"""XLA's own parser, in a process that may die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

READER = Path(__file__).with_name("cpp_reader.py")

Read = Callable[[Iterable[Path]], dict[Path, dict[str, Any]]]


@pytest.fixture(scope="session")
def xla() -> Read:
    """Reads texts as XLA does: for each {"computations"} or {"error"}; see `cpp_reader.py`."""
    if not find_spec("jaxlib._hlo"):
        pytest.skip("this jaxlib shows nothing of what its parser reads")
    return read_with_xla


def read_with_xla(paths: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    found: dict[Path, dict[str, Any]] = {}
    rest = list(paths)
    while rest:
        done = subprocess.run(
            [sys.executable, READER],
            input="".join(f"{path}\n" for path in rest),
            capture_output=True,
            text=True,
            env=os.environ | {"TPU_SKIP_MDS_QUERY": "1"},
            check=False,
        )
        answers = list(map(json.loads, done.stdout.splitlines()))
        found |= {Path(answer["path"]): answer for answer in answers if "started" not in answer}
        if done.returncode:
            # The last that it started has ended the process.
            found.setdefault(Path(answers[-1]["path"]), {"error": "aborted"})
        rest = [path for path in rest if path not in found]
    return found
