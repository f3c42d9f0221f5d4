"""Mutation testing: small faults in the product, each of which the tests that reach its line must catch.

    python -m tools.mutate [PLACE…] [--tests TEST…] [--count 200] [--seed 0] [--reached FOLDER]

A mutant changes one comparison, operator, constant, `not`, `and`/`or`, condition or `return`. They are taken at random,
as many of each folder. All tests run once, and note which of the lines each of them reaches, also in the processes that
capture. Each mutant is then tried with those of its tests that reach most of the product in a few seconds, in a fork of
a process that has imported them, in a mount namespace where nothing but a temporary folder can be written. What
survives is listed: a test is missing, or the change means nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

from .guard import guarded
from .mutants import Mutant, shuffled

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MAX_PARAMETERS = 12
"""So many of the parameters of a test are tried."""

MAX_TESTS = 150
"""Of one mutant."""


def reached(known: Sequence[Mutant], tests: Sequence[str], folder: Path) -> dict[str, dict[str, float]]:
    """For each `PATH:LINE`, the tests that reach it and pass, with their seconds."""
    hits, times, lines = (folder / name for name in ("hits", "times", "lines"))
    if not times.exists():
        lines.write_text("".join(dict.fromkeys(f"{each.file}:{line}\n" for each in known for line in each.lines)))
        own = {"MUTATE_LINES": str(lines), "MUTATE_HITS": str(hits), "MUTATE_TIMES": str(times)}
        own |= {"MUTATE_PARAMETERS": str(MAX_PARAMETERS)}
        path = os.pathsep.join((str(ROOT), str(HERE / "watching")))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutate.plugin", *tests]
        subprocess.run(command, cwd=ROOT, env=os.environ | own | {"PYTHONPATH": path})
    passed = {zlib.crc32(test.encode()): (test, float(seconds)) for seconds, test in _fields(times)}
    numbered = lines.read_text().splitlines()
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for number, checksum in _fields(hits):
        if entry := passed.get(int(checksum)):
            found[numbered[int(number)]][entry[0]] = entry[1]
    return found


def _fields(file: Path) -> Iterator[list[str]]:
    return (line.rstrip("\n").split(" ", 1) for line in file.open())


Masks = Mapping[str, int]
"""Lines, a bit for each: of a test those that it reaches, of a file its own."""


def masks_of(found: Mapping[str, Mapping[str, float]]) -> tuple[Masks, Masks]:
    """The lines of each test, and those of each file."""
    of_tests: dict[str, int] = defaultdict(int)
    of_files: dict[str, int] = defaultdict(int)
    for bit, (line, tests) in enumerate(found.items()):
        of_files[line.rpartition(":")[0]] |= 1 << bit
        for test in tests:
            of_tests[test] |= 1 << bit
    return of_tests, of_files


def tests_of(
    mutant: Mutant, found: Mapping[str, Mapping[str, float]], masks: tuple[Masks, Masks], seconds: float
) -> dict[str, float]:
    """Tests that reach a mutant, as many as take so long together, with their seconds, the quickest first.

    Of a piece of several lines, the first counts that any test reaches. Of a line that all reach, the quickest are all
    alike: taken in turn are the test that reaches most of the mutant's file in its time, since that may be about it,
    the one that reaches most of the product, since what a line does shows further on, and the one that reaches least.
    """
    of_tests, of_files = masks
    own = of_files[str(mutant.file)]
    tests = next((tests for line in mutant.lines if (tests := found.get(f"{mutant.file}:{line}"))), {})
    chosen: dict[str, float] = {}
    seen = 0
    while len(chosen) < MAX_TESTS:
        left = seconds - sum(chosen.values())
        others = [test for test in tests if test not in chosen and (tests[test] <= left or not chosen)]
        if not others:
            break
        if len(chosen) % 3 == 2:
            best = min(others, key=lambda test: of_tests[test].bit_count())
        else:
            wanted = ~seen if len(chosen) % 3 else ~seen & own
            best = max(
                others,
                key=lambda test: (
                    ((of_tests[test] & wanted).bit_count() + 0.1 * (of_tests[test] & own).bit_count())
                    / (tests[test] + 0.01)
                ),
            )
        chosen[best] = tests[best]
        seen |= of_tests[best]
    return dict(sorted(chosen.items(), key=lambda each: each[1]))


def tried(mutants: Sequence[tuple[Mutant, Mapping[str, float]]], temporary: Path) -> Iterator[bool | None]:
    """Whether each mutant is caught by its tests; None where these cannot be run, first of all without a mutant."""
    control = {test: seconds for _, tests in mutants[::6] for test, seconds in [*tests.items()][:1]}
    jobs = [(Mutant(ROOT / "inspector/units.py", range(1), "", "", slice(0, 0)), control), *mutants]
    (temporary / "tmp").mkdir()
    (temporary / "tmp" / "jobs").write_text(
        json.dumps(
            [
                {"file": str(each.file), "text": each.text.decode(), "tests": [*tests], "seconds": sum(tests.values())}
                for each, tests in jobs
            ]
        )
    )
    results = temporary / "tmp" / "results"
    results.touch()
    files = sorted({test.partition("::")[0] for _, tests in jobs for test in tests})
    plugins = ("-p", "no:cacheprovider", "-p", "tools.mutate.trying")
    own = {"MUTATE_JOBS": "/tmp/jobs", "MUTATE_RESULTS": "/tmp/results", "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp"}
    running = subprocess.Popen(
        guarded([sys.executable, "-m", "pytest", "-q", *plugins, *files], temporary / "tmp", ROOT),
        env=os.environ | own | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=(temporary / "output").open("wb"),
        stderr=subprocess.STDOUT,
    )
    with results.open() as lines:
        for number in range(len(jobs)):
            while not (line := lines.readline()).endswith("\n"):
                if running.poll() is not None:
                    raise SystemExit((temporary / "output").read_text())
                time.sleep(0.5)
            caught = json.loads(line.split()[1])
            if number == 0 and caught is not False:
                raise SystemExit("the tests fail without a mutant")
            if number:
                yield caught
    running.wait()


def main() -> int:
    """Try all; returns 1 where less than nine in ten are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, help="files or folders of the product")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="where to look for tests")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20, help="how long the tests of one mutant may take together")
    parser.add_argument("--reached", type=Path, help="keep there what the tests reach, or take it from there")
    options = parser.parse_args()
    places = [place.resolve() for place in options.places] or [ROOT / "inspector", ROOT / "parsers"]
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))):
        files[folder_of(path)].append(path)
    candidates = shuffled(files, options.seed)
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        folder = options.reached or Path(temporary)
        folder.mkdir(exist_ok=True)
        found = reached(list(chain.from_iterable(candidates.values())), options.tests, folder)
        masks = masks_of(found)
        queues = (
            ((each, tests) for each in queue if (tests := tests_of(each, found, masks, options.seconds)))
            for queue in candidates.values()
        )
        taken = (each for each in chain.from_iterable(zip_longest(*queues)) if each is not None)
        turns = list(islice(taken, options.count))
        counts = {name: [0, 0] for name in files}
        for (each, tests), caught in zip(turns, tried(turns, Path(temporary)), strict=True):
            shown = f"{' '.join(each.was.split())[:70]}  →  {' '.join(each.becomes.split())[:70]}"
            word = {True: "caught", False: "SURVIVED", None: "not run"}[caught]
            place = f"{each.file.relative_to(ROOT)}:{each.lines[0]}"
            print(f"{word:8} {place}  {shown}  ({len(tests)} tests)", flush=True)
            if caught is not None:
                counts[folder_of(each.file)][0] += caught
                counts[folder_of(each.file)][1] += 1
    for name, (some, tries) in sorted(counts.items()):
        print(f"{name:45} {some} of {tries}")
    caught, tries = map(sum, zip(*counts.values(), strict=True))
    print(f"{caught} of {tries} caught")
    return int(caught < 0.9 * tries)


def folder_of(file: Path) -> str:
    """The folder that a file is counted in."""
    return "/".join(file.relative_to(ROOT).parts[:-1][:3])


if __name__ == "__main__":
    sys.exit(main())
