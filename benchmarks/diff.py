"""How long a diff of two large modules takes, and how much memory, as ratios to only reading them.

    python benchmarks/diff.py [--folder build/bench]

The second module is the first with every name changed and one collective more. Read is every instruction's name, type
and opcode and every collective of both; by XLA's own parser, too. Each is measured in a process of its own, once: a
diff is made once. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from parse import peak_memory
from parsing.ladder import ladder, repeated_hlo
from shardscope.inspector.catalog.spellings import HLO_OPCODES
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.headline import headline
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

LARGE = 22_000_000
"""Bytes, at least, of each module."""

_NAME = re.compile(rb"%([\w.\-]+)")
_COLLECTIVE = re.compile(rb"^  %[\w.\-]+ = \S+ all-gather\(.*\n", re.MULTILINE)


def pairs(folder: Path) -> list[tuple[Path, Path]]:
    """Two modules for each target that can be compiled for here."""
    found = []
    for path in ladder(folder):
        if path.name not in ("cpu-100.hlo", "tpu-020.hlo"):
            continue
        text = path.read_bytes()
        one, other = (folder / f"{path.stem}-{side}.hlo" for side in ("before", "after"))
        one.write_bytes(repeated_hlo(text, -(-LARGE // len(text))))
        other.write_bytes(_NAME.sub(rb"%\1.other", one.read_bytes()))
        changed = other.read_bytes()
        line = _COLLECTIVE.search(changed)
        assert line is not None
        twin = line[0].replace(b" = ", b".twin = ", 1)
        other.write_bytes(changed[: line.end()] + twin + changed[line.end() :])
        found.append((one, other))
    return found


def xla(one: Path, other: Path) -> str:
    """XLA's own parser (C++)"""
    from jaxlib import _hlo

    return str(len([_hlo.hlo_module_from_text(path.read_text()) for path in (one, other)]))


def read(one: Path, other: Path) -> str:
    """read both"""
    found = []
    for path in (one, other):
        module = parse_module(Source(str(path), path.read_bytes()))
        found.append((len(module.opcode_counts()), len([each.attributes for each in module.with_opcode(HLO_OPCODES)])))
    return str(found)


def compare(one: Path, other: Path) -> str:
    """diff"""
    return headline(diff(inspect(load(str(one))), inspect(load(str(other)))))


def compare_and_look(one: Path, other: Path) -> str:
    """diff, and the text around the largest change"""
    found = diff(inspect(load(str(one))), inspect(load(str(other))))
    return str(len(found.around(found.changes[0])))


METHODS: dict[str, Callable[[Path, Path], str]] = {
    each.__name__: each for each in (xla, read, compare, compare_and_look)
}


def measured(name: str, one: str, other: str) -> dict[str, float | str]:
    before = peak_memory()
    start = time.process_time()
    found = METHODS[name](Path(one), Path(other))
    seconds = time.process_time() - start
    return {"seconds": seconds, "peak": peak_memory() - before, "found": found[:120]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--measure", nargs=3)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(*options.measure)))
        return
    for one, other in pairs(options.folder):
        size = sum(path.stat().st_size for path in (one, other)) / 1e6
        print(f"{one.stem}, {other.stem}: {size:.0f} MB together")
        results = {}
        for name, method in METHODS.items():
            command = [sys.executable, __file__, "--measure", name, str(one), str(other)]
            environment = {**os.environ, "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu"}
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                print(f"  {method.__doc__}: {(done.stderr.strip().splitlines() or ['it died'])[-1][:100]}")
                continue
            told = results[name] = json.loads(done.stdout.splitlines()[-1])
            base = results.get("read", told)
            ratios = f"{told['seconds'] / base['seconds']:.1f}x, {told['peak'] / base['peak']:.1f}x the memory"
            print(
                f"  {method.__doc__}: {told['seconds']:.2f} s, {told['peak'] / 1e6:.0f} MB; {ratios}; {told['found']}"
            )


if __name__ == "__main__":
    main()
