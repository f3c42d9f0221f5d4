"""Captures in the tests: of scripts written on the spot, by the interpreter that runs the tests."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jax._src.lib import xla_client
from shardscope.inspector.capture.events import fold
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.events import Event
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.capture.worker.channel import Channel
from shardscope.inspector.capture.worker.inputs.resolve import Resolved

PROGRAMS = Path(__file__).parent / "programs"

Captured = Callable[..., Capture]


def last(request: Request) -> Capture:
    """The Capture that everything has arrived in."""
    *_, final = capture(request)
    return final


@pytest.fixture
def captured(tmp_path: Path) -> Captured:
    """Captures `fn` of a script given as text, in a folder of its own."""

    def run(text: str, function: str = "fn", name: str = "script.py", **options: Any) -> Capture:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return last(Request(f"{path}:{function}", **options))

    return run


@pytest.fixture(scope="session")
def program() -> Captured:
    """Captures a function of a file in `programs`, once for all tests that ask for the same."""
    known: dict[Request, Capture] = {}

    def run(function: str, **options: Any) -> Capture:
        request = Request(str(PROGRAMS / function), **options)
        if request not in known:
            known[request] = last(request)
        return known[request]

    return run


@pytest.fixture(scope="session")
def devices() -> list[Any]:
    """Eight CPU devices of a client of their own, beside the one of JAX's: for programs in the process of the tests."""
    return list(xla_client.make_cpu_client(num_devices=8).devices())


@pytest.fixture
def recorded(tmp_path: Path) -> Captured:
    """Captures a call of a function in this process, and runs it."""

    def run(function: Any, *args: Any, **options: Any) -> Capture:
        from shardscope.inspector.capture.worker.recording import record

        events: list[Event] = []
        inner = getattr(function, "func", function)
        module = sys.modules[inner.__module__]
        request = Request(f"{module.__file__}:{inner.__name__}", target="local", **options)
        found = Resolved(function, inner.__name__, module, module)
        record(request, found, Channel(events.append), str(tmp_path), given=(args, {}))
        capture = Capture()
        for event in events:
            capture = fold(capture, event)
        return capture

    return run
