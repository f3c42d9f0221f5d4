"""Which tests reach a mutant, and in which order they try to catch it."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .mutants import Mutant

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
MAX_PARAMETERS = 12
"""So many of the parameters of a test note what they reach; a mutant may be tried with all."""

MAX_NEAR = 150
"""So many tests are chosen for what they reach; the others follow by their time."""


@dataclass(frozen=True)
class Reach:
    """For each `PATH:LINE` the tests that reach it and pass, with their seconds; the lines that are run at import."""

    tests: Mapping[str, Mapping[str, float]]
    at_import: frozenset[str]

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Those of each test."""
        return {test: seconds for tests in self.tests.values() for test, seconds in tests.items()}

    @cached_property
    def _of_tests(self) -> dict[str, int]:
        """The lines of each test, a bit for each."""
        masks: dict[str, int] = defaultdict(int)
        for bit, tests in enumerate(self.tests.values()):
            for test in tests:
                masks[test] |= 1 << bit
        return masks

    @cached_property
    def _of_files(self) -> dict[str, int]:
        """The lines of each file."""
        masks: dict[str, int] = defaultdict(int)
        for bit, line in enumerate(self.tests):
            masks[line.rpartition(":")[0]] |= 1 << bit
        return masks

    def imported(self, mutant: Mutant) -> bool:
        """Return whether a mutant runs before any test does, so that what it gives may be kept."""
        return any(f"{mutant.file}:{line}" in self.at_import for line in mutant.lines)

    def order(self, mutant: Mutant, seconds: float) -> list[str]:
        """Tests that reach a mutant, in the order in which they are tried.

        Of a piece of several lines, the first counts that any test reaches. First come those that are chosen, within a
        quarter of the time, then the others: of each the quickest first, since these need no capture. What is run at
        import any test may use, so that there is a choice of all, too.
        """
        lines = (self.tests.get(f"{mutant.file}:{line}") for line in mutant.lines)
        tests = next(filter(None, lines), {})
        near = self._chosen(mutant, tests, seconds / 4)
        any_of = self._chosen(mutant, self.seconds, seconds / 4) - near if self.imported(mutant) else set()
        waves = (near, any_of, tests.keys() - near - any_of)
        return [test for wave in waves for test in sorted(wave, key=lambda each: self.seconds[each])]

    def _chosen(self, mutant: Mutant, tests: Mapping[str, float], seconds: float) -> set[str]:
        """Of a line that all reach, the quickest tests are all alike.

        Taken in turn are the test that reaches most of the mutant's file in its time, since that may be about it, the
        one that reaches most of the product, since what a line does shows further on, and the one that reaches least.
        """
        reached, own = self._of_tests, self._of_files[str(mutant.file)]
        chosen: set[str] = set()
        seen, left = 0, seconds
        while len(chosen) < MAX_NEAR:
            others = [test for test in tests if test not in chosen and (tests[test] <= left or not chosen)]
            if not others:
                break
            if len(chosen) % 3 == 2:
                best = min(others, key=lambda test: reached[test].bit_count())
            else:
                wanted = ~seen if len(chosen) % 3 else ~seen & own
                best = max(
                    others,
                    key=lambda test: (
                        ((reached[test] & wanted).bit_count() + 0.1 * (reached[test] & own).bit_count())
                        / (tests[test] + 0.01)
                    ),
                )
            chosen.add(best)
            left -= tests[best]
            seen |= reached[best]
        return chosen


def watched(known: Sequence[Mutant], tests: Sequence[str], folder: Path) -> Reach:
    """What tests reach, kept in a folder."""
    hits, times, lines = (folder / name for name in ("hits", "times", "lines"))
    if not times.exists():
        lines.write_text("".join(dict.fromkeys(f"{each.file}:{line}\n" for each in known for line in each.lines)))
        own = {"MUTATE_LINES": str(lines), "MUTATE_HITS": str(hits), "MUTATE_TIMES": str(times)}
        own |= {"MUTATE_PARAMETERS": str(MAX_PARAMETERS)}
        path = os.pathsep.join((str(ROOT), str(HERE / "watching")))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutate.plugin", *tests]
        subprocess.run(command, cwd=ROOT, env=os.environ | own | {"PYTHONPATH": path})
        if not times.exists():
            raise SystemExit("no test of these passes")
    passed = {zlib.crc32(test.encode()): (test, float(seconds)) for seconds, test in _fields(times)}
    files: dict[int, dict[str, float]] = defaultdict(dict)
    for test, seconds in passed.values():
        files[zlib.crc32(test.partition("::")[0].encode())][test] = seconds
    numbered = lines.read_text().splitlines()
    found: dict[str, dict[str, float]] = defaultdict(dict)
    imported = set()
    for number, checksum in _fields(hits):
        if entry := passed.get(int(checksum)):
            found[numbered[int(number)]][entry[0]] = entry[1]
        elif tests_of_file := files.get(int(checksum)):
            imported.add(numbered[int(number)])
            found[numbered[int(number)]] |= tests_of_file
    return Reach(found, frozenset(imported))


def _fields(file: Path) -> Iterator[list[str]]:
    return (line.rstrip("\n").split(" ", 1) for line in file.open())
