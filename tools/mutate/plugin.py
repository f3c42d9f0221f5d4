"""A plugin of pytest: runs chosen tests in a given order, and notes how long each takes that passes.

`MUTATE_TESTS` names a file with the ids of the tests to run, in order. `MUTATE_TIMES` names the file that gets
`SECONDS TEST` for each test that passes.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

_seconds: Counter[str] = Counter()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out what is not chosen; of a test with many parameters, all but some, evenly."""
    if most := int(os.environ.get("MUTATE_PARAMETERS", "0")):
        groups: dict[str, list[pytest.Item]] = {}
        for item in items:
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [item for group in groups.values() for item in group[:: -(-len(group) // most)]]
    if file := os.environ.get("MUTATE_TESTS"):
        order = {name: number for number, name in enumerate(Path(file).read_text().splitlines())}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Have the lines that an earlier test reached noted once more."""
    if "MUTATE_HITS" in os.environ:
        sys.monitoring.restart_events()
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test at its end."""
    if report.passed:
        _seconds[report.nodeid] += report.duration
    else:
        _seconds[report.nodeid] = float("nan")
    if report.when == "teardown" and _seconds[report.nodeid] >= 0 and (file := os.environ.get("MUTATE_TIMES")):
        with open(file, "a") as opened:
            opened.write(f"{_seconds[report.nodeid]:.2f} {report.nodeid}\n")
