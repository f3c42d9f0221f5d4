"""A plugin of pytest: instead of running all tests, tries mutants with some of them, each in a fork.

`MUTATE_JOBS` names a file of JSON with the mutants and the ids of their tests, `MUTATE_RESULTS` the file that gets a
line for each: what became of it, the test that caught it, and how many were tried. In the fork the mutant is mounted
over its file, for the processes that a test starts, and functions that are imported already get its code. What runs
when it is imported needs a new process, in which `MUTATE_ALONE` names a file with the ids of the tests.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

MIN_S = 30
"""Seconds of the processor that a test gets at least, before it is taken for one that does not end."""

WAITED_S = 60
"""Seconds on a clock that a test gets at least, and ten times its own: one that takes longer waits for ever."""

MAX_BYTES = 6 << 30
"""What each process of a mutant may allocate."""

MAX_ALONE = 150
"""So many tests are tried in a new process, which has to import their files."""

UNDECIDED = 77
"""Status of a process that has not come to the end of the tests."""

WORDS = {0: "SURVIVED", UNDECIDED: "OPEN"}

CAUGHT = ("caught", "waits")
"""A test failed, or did not end: a mutant is found by either."""

RUNNING = Path("/tmp/running")
"""How many tests a process has begun, and the last of these."""

ALONE = Path("/tmp/alone")
"""The tests of a new process."""


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try them; the tests themselves do not run."""
    items = {item.nodeid: item for item in session.items}
    work = json.loads(Path(os.environ["MUTATE_JOBS"]).read_text())
    if "MUTATE_ALONE" in os.environ:
        tests = json.loads(Path(os.environ["MUTATE_ALONE"]).read_text())
        os._exit(_run([items[test] for test in tests[:MAX_ALONE]], work) or (UNDECIDED if tests[MAX_ALONE:] else 0))
    sound: dict[str, bool] = {}
    with open(os.environ["MUTATE_RESULTS"], "a", buffering=1) as results:
        for job in work["jobs"]:
            tests = [test for test in job["tests"] if test in items]
            files = {test.partition("::")[0] for test in tests}
            beside = (test for test in items.keys() - tests if test.partition("::")[0] in files)
            tests += sorted(beside, key=lambda test: (_seconds(test, work), test))
            while True:
                tests = [test for test in tests if sound.get(test, True)]
                word, test, count = _tried(job, [items[test] for test in tests], work)
                if word not in CAUGHT or not test:
                    break
                if test not in sound:
                    sound[test] = _tried({}, [items[test]], work)[0] == "SURVIVED"
                if sound[test]:
                    break
            results.write(json.dumps([word, test, count]) + "\n")
    return True


def _seconds(test: str, work: Mapping[str, Any]) -> float:
    """Those that a test took; of parameters that nothing is known of, those of one that is."""
    return float(work["seconds"].get(test) or work["seconds"].get(test.partition("[")[0], 1.0))


def _tried(job: Mapping[str, Any], tests: Sequence[pytest.Item], work: Mapping[str, Any]) -> tuple[str, str, int]:
    """What becomes of a mutant, or of none; the test that caught it; how many were tried."""
    RUNNING.write_text("0 ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
            if job:
                _take_effect(Path(job["file"]), job["text"])
            if job.get("imported"):
                _begin_anew([test.nodeid for test in tests])
            status = _run(tests, work)
        finally:
            os._exit(status)
    word = _awaited(child, work)
    count, test = RUNNING.read_text().split(" ", 1)
    return word, test if word in CAUGHT else "", int(count)


def _awaited(child: int, work: Mapping[str, Any]) -> str:
    while time.time() - RUNNING.stat().st_mtime < WAITED_S + 10 * _seconds_running(work):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return WORDS.get(os.waitstatus_to_exitcode(status), "caught")
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "waits"


def _seconds_running(work: Mapping[str, Any]) -> float:
    """Those of the test that has begun; before the first, files are imported."""
    test = RUNNING.read_text().partition(" ")[2]
    return _seconds(test, work) if test else MIN_S


def _run(tests: Sequence[pytest.Item], work: Mapping[str, Any]) -> int:
    """Return 1 when a test fails, 0 when all pass."""
    begin = sum(os.times()[:4])
    for count, (item, following) in enumerate(zip(tests, [*tests[1:], None], strict=True)):
        if sum(os.times()[:4]) - begin > work["most"]:
            return UNDECIDED
        RUNNING.write_text(f"{count + 1} {item.nodeid}")
        most = int(sum(os.times()[:2]) + MIN_S + 5 * _seconds(item.nodeid, work))
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return 1
    return 0


def _begin_anew(tests: Sequence[str]) -> None:
    """Replace this process by one that imports what is mutated."""
    resource.setrlimit(resource.RLIMIT_CPU, (4 * MIN_S, resource.RLIM_INFINITY))
    ALONE.write_text(json.dumps(tests))
    files = sorted({test.partition("::")[0] for test in tests[:MAX_ALONE]})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutate.trying", *files]
    os.execve(sys.executable, command, os.environ | {"MUTATE_ALONE": str(ALONE)})


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
