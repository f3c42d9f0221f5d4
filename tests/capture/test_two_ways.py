"""A sample through a script that calls it: the same program as by its own inputs, but for ids and times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.pipeline import inspect

from .conftest import last

SampleCapture = Callable[[str], Capture]

CALLING = """
import sys
sys.path.insert(0, {folder!r})
from {module} import {name}, {name}_inputs

if __name__ == "__main__":
    {name}(*({name}_inputs() if callable({name}_inputs) else {name}_inputs))
"""

SAMPLES = ("fsdp_tp:grad", "data_parallel:grad")


def facts(capture: Capture) -> object:
    """The arguments, results and memory of a capture, and the collectives and findings of its report."""
    report = inspect(capture)
    return (
        capture.arguments,
        capture.outputs,
        capture.memory,
        [
            (each.kind, str(each.axes), each.step_bytes, each.executions, each.direction, each.origin, each.argument)
            for each in report.collectives
        ],
        [(each.rule, each.title) for each in report.findings],
    )


@pytest.mark.parametrize("function", SAMPLES)
def test_two_ways(sample: SampleCapture, tmp_path: Path, function: str) -> None:
    own = sample(function)
    assert own.subject is not None
    assert own.subject.script is not None
    module, _, name = function.partition(":")
    script = tmp_path / "script.py"
    script.write_text(CALLING.format(folder=str(Path(own.subject.script).parent), module=module, name=name))
    called = last(Request(f"{script}:{name}", live=False))
    assert called.complete, called.failure
    assert facts(called) == facts(own)
