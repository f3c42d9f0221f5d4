"""The process that ends what another one has started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shardscope.inspector.capture.guardian import Guardian
from shardscope.inspector.capture.guarding import MARK


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux shows a process's environment")
def test_a_guardian_is_not_ended_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What inherits a mark is ended: a guardian has none, and what it shall end has that of each."""
    monkeypatch.setenv(MARK, ":outer")
    with Guardian() as guardian:
        own = dict(
            line.split("=", 1)
            for line in Path(f"/proc/{guardian._process.pid}/environ").read_text().split("\0")
            if "=" in line
        )
        assert MARK not in own
        assert own.keys() >= {"PATH"} & os.environ.keys()
        assert guardian.environment(os.environ)[MARK] == f":outer:{guardian._mark}"
        assert guardian.environment({}) == {MARK: f":{guardian._mark}"}
        assert guardian._mark
