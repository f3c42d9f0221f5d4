"""The command in a folder of its own: called in this process, or in a process of its own as a user runs it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.cli import main

Shardscope = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def shardscope(tmp_path: Path) -> Shardscope:
    """Runs `shardscope ARGUMENTS` in a temporary folder, with nothing on standard input and no terminal."""

    def run(*arguments: str, input: bytes = b"", folder: Path = tmp_path) -> subprocess.CompletedProcess[bytes]:
        stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (input, b"", b""))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setattr(sys, "argv", ["shardscope", *arguments])
            for name, stream in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                patch.setattr(sys, name, stream)
            try:
                status: object = main(arguments)
            except SystemExit as ending:
                status = ending.code
        out, err = (stream.detach() for stream in (stdout, stderr))
        assert isinstance(out, io.BytesIO)
        assert isinstance(err, io.BytesIO)
        assert isinstance(status, int)
        return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def shardscope_process(tmp_path: Path) -> Shardscope:
    """The same in a process of its own, as a user starts it, with these variables in its environment."""

    def run(*arguments: str, input: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "shardscope", *arguments],
            input=input,
            capture_output=True,
            cwd=tmp_path,
            env=os.environ | variables,
            check=False,
        )

    return run
