"""Mutation testing: small faults in the product, each of which the tests that reach its line must catch.

    python -m tools.mutate [PLACE…] [--tests TEST…] [--count 200] [--seed 0] [--reached FOLDER]

A mutant changes one comparison, operator, constant, `not`, `and`/`or`, condition or `return`. They are taken at random,
as many of each folder. All tests run once, and note which of the lines each of them reaches, also in the processes that
capture. Each mutant is then tried with its tests, those first that are quick and reach most of the product, until one
fails, in a fork of a process that has imported them, in a mount namespace where nothing but a temporary folder can be
written. What survives all of them is listed: a test is missing, or the change means nothing. What survives those that
the time allows is not decided. A test that waits for ever, and did not without the mutant, has caught it: `waits`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

from .guard import guarded
from .mutants import Mutant, shuffled
from .reach import ROOT, Reach, watched
from .trying import CAUGHT


def tried(mutants: Sequence[Mutant], reach: Reach, seconds: float, temporary: Path) -> Iterator[tuple[str, str, int]]:
    """What becomes of each mutant, the test that caught it, and how many were tried, first of all without a mutant."""
    jobs = [
        {
            "file": str(each.file),
            "text": each.text.decode(),
            "tests": reach.order(each, seconds),
            "imported": reach.imported(each),
        }
        for each in mutants
    ]
    (temporary / "tmp").mkdir()
    work = {"seconds": reach.seconds, "most": seconds, "jobs": jobs}
    (temporary / "tmp" / "jobs").write_text(json.dumps(work))
    results = temporary / "tmp" / "results"
    results.touch()
    files = sorted({test.partition("::")[0] for job in jobs for test in job["tests"]})
    own = {"MUTATE_JOBS": "/tmp/jobs", "MUTATE_RESULTS": "/tmp/results", "PYTHONPATH": str(ROOT), "TMPDIR": "/tmp"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutate.trying", *files]
    running = subprocess.Popen(
        guarded(command, temporary / "tmp", ROOT),
        env=os.environ | own | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=(temporary / "output").open("wb"),
        stderr=subprocess.STDOUT,
    )
    with results.open() as lines:
        for _ in jobs:
            while not (line := lines.readline()).endswith("\n"):
                if running.poll() is not None:
                    raise SystemExit((temporary / "output").read_text())
                time.sleep(0.5)
            word, test, count = json.loads(line)
            yield word, test, count
    running.wait()


def main() -> int:
    """Try all; returns 1 where less than nine in ten are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, help="files or folders of the product")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="where to look for tests")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="of the processor, for the tests of one mutant")
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
        reach = watched(list(chain.from_iterable(candidates.values())), options.tests, folder)
        queues = ((each for each in queue if reach.order(each, 0)) for queue in candidates.values())
        taken = (each for each in chain.from_iterable(zip_longest(*queues)) if each is not None)
        turns = list(islice(taken, options.count))
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        results = tried(turns, reach, options.seconds, Path(temporary))
        for each, (word, test, count) in zip(turns, results, strict=True):
            shown = f"{' '.join(each.was.split())[:70]}  →  {' '.join(each.becomes.split())[:70]}"
            place = f"{each.file.relative_to(ROOT)}:{each.lines[0]}"
            print(f"{word:8} {place}  {shown}  ({test or 'tests'}, {count})", flush=True)
            counts[folder_of(each.file)][word] += 1
    for name, words in sorted(counts.items()):
        print(f"{name:45} {_found(words)} of {words.total()}")
    every = sum(counts.values(), Counter())
    print(f"{_found(every)} of {every.total()} caught, {every['OPEN']} not decided")
    return int(_found(every) < 0.9 * every.total())


def _found(words: Counter[str]) -> int:
    return sum(words[each] for each in CAUGHT)


def folder_of(file: Path) -> str:
    """The folder that a file is counted in."""
    return "/".join(file.relative_to(ROOT).parts[:-1][:3])


if __name__ == "__main__":
    sys.exit(main())
