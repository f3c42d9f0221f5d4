"""Break one collective after another of compiled programs: `python tools/validated_mutants.py TARGET …`.

Each function of the samples, or of `--functions SCRIPT:FN …`, is compiled, and its optimized module is written once for
each collective that loses its sum (groups of one device each), and for each whose groups or pairs are others. A mutant
is noticed if `shardscope validate` says that it differs; those that are not are listed with their line. `--python FILE`
compiles with another environment.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from shardscope.inspector.capture.protocol.case import OPTIMIZED
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.evaluate.validate import validate
from shardscope.samples.catalogue import samples

SECONDS = 60.0
TIMEOUT_S = 300
GROUPS = re.compile(r"replica_groups=(?:(\{\{[\d,{}]*\}\})|\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?)")
PAIRS = re.compile(r"source_target_pairs=(\{\{[\d,{}]*\}\})")
SUMS = re.compile(r" (?:all-reduce|all-reduce-start)\(")

Groups = list[list[int]]


def main() -> int:
    """Print each mutant that is not noticed, and how many are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--functions", nargs="+", metavar="SCRIPT:FN")
    parser.add_argument("--python", metavar="FILE")
    options = parser.parse_args()
    every = [f"{sample.path}:{function}" for sample in samples() for function in sample.functions]
    for target in options.targets:
        counts = Counter[tuple[str, str]]()
        for function in options.functions or every:
            for fault, line, status in judged(function, target, options.python):
                counts[fault, status] += 1
                if status != "differs":
                    print(f"{target:14} {Path(function).name:40} {fault:8} {status:14} {line}", flush=True)
        for fault in sorted({fault for fault, _ in counts}):
            of = sum(count for (each, _), count in counts.items() if each == fault)
            print(f"{target}: {fault}: {counts[fault, 'differs']} of {of} noticed", flush=True)
    return 0


def judged(function: str, target: str, python: str | None) -> Iterator[tuple[str, str, str]]:
    """Each mutant of a program: the fault, the line that has it, and what validation says."""
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder)
        last_capture(
            Request(function, target=target, python=python, live=False, probe="none", timeout=TIMEOUT_S, case=folder)
        )
        if validate(case, SECONDS).status != "same":
            return
        text = (case / OPTIMIZED).read_text()
        for fault, start, end, line in mutants(text):
            (case / OPTIMIZED).write_text(text[:start] + line + text[end:])
            yield fault, line.strip()[:300], validate(case, SECONDS).status


def mutants(text: str) -> Iterator[tuple[str, int, int, str]]:
    """Each fault, and the line that it replaces."""
    for found in re.finditer(r"[^\n]+", text):
        line = found[0]
        for match in (GROUPS.search(line), PAIRS.search(line)):
            if match is None:
                continue
            groups = listed(match)
            is_sum = SUMS.search(line) is not None
            changed = {"groups": exchanged(groups)} if match.re is GROUPS else {"pairs": turned(groups)}
            if is_sum:
                changed["dropped"] = [[device] for group in groups for device in group]
            if is_sum and len(groups) == 1:
                del changed["groups"]  # a sum does not depend on the order
            name = match[0].partition("=")[0]
            for fault, rows in changed.items():
                if rows != groups:
                    written = ",".join(f"{{{','.join(map(str, row))}}}" for row in rows)
                    yield fault, *found.span(), f"{line[: match.start()]}{name}={{{written}}}{line[match.end() :]}"


def listed(match: re.Match[str]) -> Groups:
    """Groups or pairs as lists, from either notation of HLO."""
    if match[1]:
        return [[int(each) for each in row.split(",")] for row in re.findall(r"\{([\d,]+)\}", match[1])]
    shape, dims, order = ([int(each) for each in part.split(",")] if part else None for part in match.groups()[1:])
    assert shape is not None
    devices = np.arange(np.prod(shape)).reshape(dims)
    return [[int(each) for each in row] for row in devices.transpose(order).reshape(shape)]


def exchanged(groups: Groups) -> Groups:
    """The last members of the first and the last group in each other's place; of one group, in another order."""
    rows = [list(row) for row in groups]
    if len(rows) == 1:
        return [rows[0][1:] + rows[0][:1]]
    rows[0][-1], rows[-1][-1] = rows[-1][-1], rows[0][-1]
    return rows


def turned(pairs: Groups) -> Groups:
    """The same pairs, but for the first two, whose targets are exchanged."""
    if len(pairs) < 2:
        return []
    (first, one), (second, other), *more = pairs
    return [[first, other], [second, one], *more]


if __name__ == "__main__":
    raise SystemExit(main())
