"""How fast and in how much memory texts are read, beside the compilers' own parsers in the same run.

    python benchmarks/parse.py [--folder build/bench] [--only hlo|mlir] [--write FILE]

Every method runs on every text in a process of its own: once to warm up, when the memory is measured, and then for two
seconds or five times, of which the fastest counts. Caches of parsed pieces are emptied before each; grammars stay
built.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from datetime import date
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from platform import machine, python_version

from parsing.ladder import ladder
from parsing.methods import METHODS

REPETITIONS = 5
SECONDS = 2.0

INTRODUCTION = """\
# Performance of the parsers

`make bench` measures them and prints these tables. Ratios compare with the compiler's own parser, in C++, on the same
text in the same run: above 1 is faster than C++. Times are processor time, of the fastest of several readings with no
piece of text remembered from one to the next; memory is the peak of a first reading. The texts are those of one
FSDP+TP training step (`benchmarks/parsing/train_step.py`), the numbers in their names are its layers; `repeated` is the
longest one with all of its computations, or its main function, there several times under other names."""

Result = dict[str, float]


def measured(method_name: str, path: Path) -> Result:
    """Seconds of the fastest reading, and the peak of memory of the first one beyond the text, in bytes."""
    method = {each.__name__: each for methods in METHODS.values() for each in methods}[method_name]
    run = method(path.read_bytes())
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the kernel starts the peak anew
    before = peak_memory()
    found = run()
    peak = peak_memory() - before
    seconds: list[float] = []
    while len(seconds) < REPETITIONS and sum(seconds) < SECONDS:
        empty_caches()
        # Of the processor: what else a machine does counts less than by the clock.
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return {"seconds": min(seconds), "peak": peak, "found": found}


def peak_memory() -> int:
    """The most bytes that this process has had in memory."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024


def empty_caches() -> None:
    """Forget all pieces of text that were parsed."""
    for each in gc.get_objects():
        if isinstance(each, type(lru_cache(len))) and str(getattr(each, "__module__", "")).startswith("shardscope."):
            each.cache_clear()


def in_a_process(method_name: str, path: Path) -> Result | None:
    """The same, in a new process; None if it did not survive."""
    environment = {**os.environ, "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, __file__, "--measure", method_name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def cold(path: Path) -> float:
    """a whole process that lists every collective"""
    code = "import sys; from parsing.methods import hlo_collectives as f; f(open(sys.argv[1], 'rb').read())()"
    seconds = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, path.resolve()], check=True, cwd=Path(__file__).parent)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def tables(paths: list[Path], suffixes: Collection[str]) -> Iterator[str]:
    """The lines of Markdown tables, as they are measured: for each kind of text the times, and then the memory."""
    for suffix in suffixes:
        methods = METHODS[suffix]
        texts = [path for path in paths if path.suffix == suffix]
        sizes = [path.stat().st_size / 1e6 for path in texts]
        head = [f"{path.stem}<br>{size:.2f} MB" for path, size in zip(texts, sizes, strict=True)]
        yield from header("time", *head)
        memory = []
        anchors: list[Result | None] = []
        for method in methods:
            name = (method.__doc__ or "").strip()
            results = [in_a_process(method.__name__, path) for path in texts]
            anchors = anchors or results
            cells = zip(results, anchors, sizes, strict=True)
            yield row(name, *(time_cell(result, anchor, size) for result, anchor, size in cells))
            memory.append(row(name, *map(memory_cell, results, sizes)))
        if suffix == ".hlo":
            yield row(f"{cold.__doc__}", *(f"{cold(path) * 1e3:.0f} ms" for path in texts))
        yield from header("memory beyond the text", *head)
        yield from memory


def time_cell(result: Result | None, anchor: Result | None, size: float) -> str:
    if result is None:
        return "aborts"
    ratio = f", **{anchor['seconds'] / result['seconds']:.1f}x**" if anchor else ""
    return f"{result['seconds'] * 1e3:.1f} ms, {size / result['seconds']:.0f} MB/s{ratio}"


def memory_cell(result: Result | None, size: float) -> str:
    return "" if result is None else f"{result['peak'] / 1e6:.0f} MB, {result['peak'] / 1e6 / size:.1f} a MB"


def header(*cells: str) -> tuple[str, ...]:
    return "", row(*cells), "|" + " --- |" * len(cells)


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def report(folder: Path, suffixes: Collection[str]) -> Iterator[str]:
    """The lines of the tables, and before them what they are of."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("jax", "jaxlib", "lark"))
    where = f"{date.today()}, Python {python_version()}, {versions}, {os.cpu_count()} cores of {machine()}"
    yield from (INTRODUCTION, "", f"Measured on {where}.")
    yield from tables(ladder(folder), suffixes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--only", choices=("hlo", "mlir"))
    parser.add_argument("--write", type=Path)
    parser.add_argument("--measure", nargs=2, metavar=("METHOD", "PATH"))
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.measure[0], Path(options.measure[1]))))
        return
    lines = []
    for line in report(options.folder, [f".{options.only}"] if options.only else list(METHODS)):
        # Each as it is known: all of them take a quarter of an hour.
        print(line, flush=True)
        lines.append(line)
    if options.write:
        options.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
