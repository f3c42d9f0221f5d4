"""Which processes are forked from a warm server, and which servers there are, with servers that start nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture import warm
from shardscope.inspector.capture.warm import COLD_STARTS, LATE, LOAD, MAX_BYTES, MAX_SERVERS, Warmth


class Server:
    """One that answers with numbers, unless it has ended."""

    made: list[Server]
    pids: Iterator[int]

    def __init__(self, python: str, folder: str, environment: dict[str, str]) -> None:
        self.python, self.environment = python, environment
        self.memory, self.is_gone, self.is_closed = MAX_BYTES, False, False
        self.made.append(self)

    def fork(self, request: Any, ends: Any) -> int:
        assert not self.is_closed
        if self.is_gone:
            raise ConnectionError
        return next(self.pids)

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    Server.made, Server.pids = [], itertools.count(7)
    monkeypatch.setattr(warm, "_Server", Server)
    return Server.made


def asked(warmth: Warmth, number: int = 0, *, cwd: str | None = None, **more: str) -> int | None:
    command = ["python", "-c", LOAD, "/folder", "main"]
    return warmth.fork(command, cwd, {"NUMBER": str(number), **more}, {}, [])


def test_the_first_of_an_environment_are_cold(servers: list[Server]) -> None:
    warmth = Warmth()
    warmth.enabled = True
    assert [asked(warmth) for _ in range(COLD_STARTS)] == [None] * COLD_STARTS
    assert [asked(warmth) for _ in range(3)] == [7, 8, 9]
    assert asked(warmth, **dict.fromkeys(LATE, "other")) == 10
    assert [(each.python, each.environment) for each in servers] == [("python", {"NUMBER": "0"})]
    assert warmth.forked == 4
    assert asked(warmth, 1) is None
    warmth.close()
    assert [each.is_closed for each in servers] == [True]


def test_what_is_started_as_usual(servers: list[Server], tmp_path: Path) -> None:
    warmth = Warmth()
    warmth.enabled = True
    for _ in range(COLD_STARTS):
        asked(warmth)
    assert asked(warmth, cwd=str(tmp_path / "missing")) is None
    assert warmth.fork(["python", "-c", "print()", "/folder"], None, {"NUMBER": "0"}, {}, []) is None
    assert warmth.fork(["python", "-c", LOAD, "/folder", "main"], None, None, {}, []) is None
    assert warmth.fork("python -c", None, {"NUMBER": "0"}, {}, []) is None
    warmth.enabled = False
    assert asked(warmth) is None
    assert servers == []
    warmth.enabled = True
    assert asked(warmth, cwd=str(tmp_path)) == 7
    warmth.close()


def test_the_servers_used_last_stay(servers: list[Server]) -> None:
    warmth = Warmth()
    warmth.enabled = True
    for number in range(MAX_SERVERS):
        assert [asked(warmth, number) is None for _ in range(COLD_STARTS + 1)] == [True] * COLD_STARTS + [False]
    assert asked(warmth, 0) is not None
    for _ in range(COLD_STARTS + 1):
        asked(warmth, MAX_SERVERS)
    assert [each.is_closed for each in servers] == [
        number == min(1, MAX_SERVERS - 1) for number in range(MAX_SERVERS + 1)
    ]
    warmth.close()
    assert all(each.is_closed for each in servers)


def test_a_server_that_is_gone_or_too_large_is_replaced(servers: list[Server]) -> None:
    """One that is gone only after as many cold starts as at first."""
    warmth = Warmth()
    warmth.enabled = True
    for _ in range(COLD_STARTS + 1):
        asked(warmth)
    servers[0].memory += 1
    assert asked(warmth) is not None
    assert [each.is_closed for each in servers] == [True, False]
    servers[1].is_gone = True
    assert asked(warmth) is None
    assert servers[1].is_closed
    assert [asked(warmth) is None for _ in range(COLD_STARTS + 1)] == [True] * COLD_STARTS + [False]
    assert len(servers) == 3
    warmth.close()


def test_a_server_is_prepared_for_what_was_started_last(servers: list[Server]) -> None:
    warmth = Warmth()
    warmth.enabled = True
    warmth.prepare()
    assert servers == []
    asked(warmth, 5)
    warmth.enabled = False
    warmth.prepare()
    assert servers == []
    warmth.enabled = True
    warmth.prepare()
    warmth.prepare()
    assert [each.environment for each in servers] == [{"NUMBER": "5"}]
    assert asked(warmth, 5) == 7
    warmth.close()
