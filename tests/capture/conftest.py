"""Captures in the tests: of scripts written on the spot, by the interpreter that runs the tests."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture

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
