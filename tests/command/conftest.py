"""The command as a user runs it: in a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Shardscope = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def shardscope(tmp_path: Path) -> Shardscope:
    """Runs `shardscope ARGUMENTS` in a temporary folder, with nothing on standard input and no terminal."""

    def run(
        *arguments: str, input: bytes = b"", folder: Path = tmp_path, **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "shardscope", *arguments],
            input=input,
            capture_output=True,
            cwd=folder,
            env=os.environ | variables,
            check=False,
        )

    return run
