"""Mutation testing: small faults in the product, each of which the tests that reach its line must catch.

    python -m tools.mutate [PLACE…] [--tests TEST…] [--count 200] [--seed 0] [--reached FOLDER]

A mutant changes one comparison, operator, constant, `not`, `and`/`or`, condition or `return`. They are taken at random,
as many of each folder. All tests run once, and note which of the lines each of them reaches, also in the processes that
capture. Each mutant is then tried with the quickest of its tests, in a mount namespace where it is in the place of
its file, and where nothing but a temporary folder can be written. What survives is listed: a test is missing, or the
change means nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

from .guard import survives
from .mutants import Mutant, sample

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CANDIDATES = 4
"""So many times as many mutants are watched as are tried: no test reaches some of them."""

MAX_PARAMETERS = 12
"""So many of the parameters of a test are tried."""


def reached(chosen: Sequence[Mutant], tests: Sequence[str], folder: Path) -> dict[str, dict[str, float]]:
    """For each `PATH:LINE`, the tests that reach it and pass, with their seconds."""
    hits, times, lines = (folder / name for name in ("hits", "times", "lines"))
    if not times.exists():
        lines.write_text("".join(f"{each.file}:{line}\n" for each in chosen for line in each.lines))
        own = {"MUTATE_LINES": str(lines), "MUTATE_HITS": str(hits), "MUTATE_TIMES": str(times)}
        own |= {"MUTATE_PARAMETERS": str(MAX_PARAMETERS)}
        path = os.pathsep.join((str(ROOT), str(HERE / "watching")))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutate.plugin", *tests]
        subprocess.run(command, cwd=ROOT, env=os.environ | own | {"PYTHONPATH": path})
    passed = {test: float(seconds) for seconds, _, test in _fields(times)}
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for line, _, test in _fields(hits):
        if test in passed:
            found[line][test] = passed[test]
    return found


def _fields(file: Path) -> list[tuple[str, str, str]]:
    return [line.partition(" ") for line in file.read_text().splitlines()]


def tests_of(mutant: Mutant, found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The tests that reach a mutant, with their seconds: those that reach the first line of it that any reaches."""
    return next((dict(tests) for line in mutant.lines if (tests := found.get(f"{mutant.file}:{line}"))), {})


def main() -> int:
    """Try all; returns 1 where less than nine in ten are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, help="files or folders of the product")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="where to look for tests")
    parser.add_argument("--count", type=int, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60, help="how long the tests of one mutant may take together")
    parser.add_argument("--reached", type=Path, help="keep there what the tests reach, or take it from there")
    parser.add_argument("--only-reached", action="store_true", help="only see what the tests reach")
    options = parser.parse_args()
    places = [place.resolve() for place in options.places] or [ROOT / "inspector", ROOT / "parsers"]
    files: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))):
        files["/".join(path.relative_to(ROOT).parts[:-1][:3])].append(path)
    chosen = sample(files, options.seed, CANDIDATES * -(-options.count // len(files)))
    everything = list(chain.from_iterable(chosen.values()))
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        folder = options.reached or Path(temporary)
        folder.mkdir(exist_ok=True)
        found = reached(everything, options.tests, folder)
    if options.only_reached:
        return 0
    queues = ([each for each in queue if tests_of(each, found)] for queue in chosen.values())
    turns = [each for each in chain.from_iterable(zip_longest(*queues)) if each is not None][: options.count]
    caught = {folder: [0, 0] for folder in chosen}
    for each in turns:
        alive = survives(each, tests_of(each, found), options.seconds)
        counts = caught["/".join(each.file.relative_to(ROOT).parts[:-1][:3])]
        counts[0] += not alive
        counts[1] += 1
        shown = f"{' '.join(each.was.split())[:70]}  →  {' '.join(each.becomes.split())[:70]}"
        word = "SURVIVED" if alive else "caught"
        print(f"{word:8} {each.file.relative_to(ROOT)}:{each.lines[0]}  {shown}", flush=True)
    for name, (some, all_of_them) in sorted(caught.items()):
        print(f"{name:45} {some} of {all_of_them}")
    total = sum(some for some, _ in caught.values())
    print(f"{total} of {len(turns)} caught")
    return int(total < 0.9 * len(turns))


if __name__ == "__main__":
    sys.exit(main())
