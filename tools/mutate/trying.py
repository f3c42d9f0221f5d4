"""A plugin of pytest: instead of running all tests, tries mutants with some of them, each in a fork.

`MUTATE_JOBS` names a file of JSON with the mutants and the ids of their tests, `MUTATE_RESULTS` the file that gets a
line for each: its number, and whether it was caught, null where its tests came to no end. In the fork the mutant is
mounted over its file, for the processes that a test starts, and functions that are imported already get its code.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol

MIN_S = 120
"""Seconds of the processor that the tests of a mutant get at least."""

WAITED = 5
"""So many times as long they may take on a clock: beyond that, the machine may be at fault."""

MAX_BYTES = 6 << 30
"""What each process of a mutant may allocate."""


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try them; the tests themselves do not run."""
    items = {item.nodeid: item for item in session.items}
    with open(os.environ["MUTATE_RESULTS"], "a", buffering=1) as results:
        for number, job in enumerate(json.loads(Path(os.environ["MUTATE_JOBS"]).read_text())):
            chosen = [items[test] for test in job["tests"] if test in items]
            caught = _caught(job, chosen) if chosen else None
            results.write(f"{number} {json.dumps(caught)} {len(chosen)}\n")
    return True


def _caught(job: dict[str, str], tests: Sequence[pytest.Item]) -> bool | None:
    most = MIN_S + int(10 * float(job["seconds"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            _take_effect(Path(job["file"]), job["text"])
            status = _first_failure(tests)
        finally:
            os._exit(status)
    end = time.monotonic() + WAITED * most
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status != 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _first_failure(tests: Sequence[pytest.Item]) -> int:
    for item, following in zip(tests, [*tests[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return 1
    return 0


def _take_effect(file: Path, text: str) -> None:
    """Have this process, and those that it starts, run a mutant."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as written:
        written.write(text)
    os.unshare(os.CLONE_NEWNS)
    subprocess.run(["mount", "--bind", written.name, str(file)], check=True)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _inside(compile(text, str(file), "exec"))}
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(file):
            code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code.co_freevars == function.__code__.co_freevars:
                function.__code__ = code


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inside(constant)
