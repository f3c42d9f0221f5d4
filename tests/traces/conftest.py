"""A training script that ran as it is, recorded once for all tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.tracing import run_traced
from shardscope.inspector.report.traces import Program, Trace
from shardscope.inspector.traces.read import read_trace

HERE = Path(__file__).parent
LAYERS = 3


class Recorded:
    """A trace, what its script printed, and the programs by id."""

    def __init__(self, folder: Path, *command: str, options: TraceOptions) -> None:
        with (folder / "stdout").open("wb") as stdout:
            ended = run_traced((sys.executable, *command), folder, options, 8, stdout)
        self.folder = folder
        self.stdout = (folder / "stdout").read_text()
        self.trace: Trace = read_trace(folder, command, ended.status, ended.seconds)
        self.programs: dict[str, Program] = {self.trace.id_of(program): program for program in self.trace.programs}


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The training script, with its step captured in full."""
    folder = tmp_path_factory.mktemp("trace")
    options = TraceOptions(match="train_step", target="cpu")
    return Recorded(folder, str(HERE / "training.py"), "--layers", str(LAYERS), options=options)
