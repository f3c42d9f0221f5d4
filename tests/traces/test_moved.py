"""A JAX whose private parts have moved: the list says which, and the script runs as ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.tracing import traced_environment
from shardscope.inspector.traces.read import read_trace

MOVED = {
    "jax._src.interpreters.pxla.lower_sharding_computation": "has no pxla.lower_sharding_computation",
    "jax._src.compiler.compile_or_get_cached": "has no compiler.compile_or_get_cached",
    "jax._src.interpreters.pxla.ExecuteReplicated": "has no pxla.ExecuteReplicated",
}

SCRIPT = """
import sys, types
for place in {places}:
    module, _, name = place.rpartition(".")
    sys.modules.setdefault(module, types.ModuleType(module))
sys.modules["jax._src.interpreters.pxla"].MeshComputation = None
jax = types.ModuleType("jax")
jax.__version__ = "9.9"
sys.modules["jax"] = jax
import {package}.capture.worker.tracing.start as start
from {package}.capture.protocol.trace import TraceOptions
recorder = start.begin({folder!r}, TraceOptions())
print("ran")
"""


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """What a script prints, and the messages, where JAX is empty."""
    folder = tmp_path_factory.mktemp("moved")
    trace = folder / "trace"
    environment = {**traced_environment(os.environ, trace, TraceOptions()), "PYTHONPATH": ""}
    script = SCRIPT.format(places=list(MOVED), package="shardscope.inspector", folder=str(trace))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    [process] = read_trace(Path(trace)).processes
    return done.stdout + done.stderr, [message.text for message in process.messages]


def test_the_script_runs(moved: tuple[str, list[str]]) -> None:
    assert "ran\n" in moved[0]


@pytest.mark.parametrize("place", MOVED)
def test_what_has_moved_is_named(moved: tuple[str, list[str]], place: str) -> None:
    assert [text for text in moved[1] if f"JAX 9.9 {MOVED[place]}" in text]
