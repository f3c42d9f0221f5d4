"""A plugin of pytest: notes how long each test takes that passes.

`MUTATE_TIMES` names the file that gets `SECONDS TEST` for each, `MUTATE_PARAMETERS` says how many parameters of a test
are tried.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

_seconds: Counter[str] = Counter()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with many parameters, take out all but some, evenly."""
    if most := int(os.environ.get("MUTATE_PARAMETERS", "0")):
        groups: dict[str, list[pytest.Item]] = {}
        for item in items:
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [item for group in groups.values() for item in group[:: -(-len(group) // most)]]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Have the lines that importing a file of tests reaches noted for it."""
    if "MUTATE_HITS" in os.environ and isinstance(collector, pytest.Module):
        os.environ["MUTATE_FILE"] = collector.nodeid
        sys.monitoring.restart_events()
    try:
        return (yield)
    finally:
        os.environ.pop("MUTATE_FILE", None)


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
