"""How long what is told of shardings takes on a large module, as ratios to only reading its operations.

    python benchmarks/shardings.py [--layers 500] [--folder build/bench]

The module is a transformer's training step with as many layers, lowered and propagated once and kept in the folder.
What follows in the table is done after what stands before it, in one process. Seconds are the processor's: others may
use it too. These are the figures of docs/shardings.md.
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

STEP = Path(__file__).parent.parent / "tests" / "inspector" / "shardings" / "transformer_step.py"

MAKE = """
import sys
from pathlib import Path
from shardscope.inspector.capture.worker.provenance import propagate
sys.setrecursionlimit(100_000)
sys.path.insert(0, sys.argv[1])
import jax, step
text = jax.jit(step.step).lower(*step.step_inputs()).as_text(debug_info=True).encode()
Path(sys.argv[2]).write_bytes(text)
Path(sys.argv[3]).write_bytes(propagate(text, "origins steps"))
"""


def made(folder: Path, layers: int) -> tuple[Path, Path]:
    """The StableHLO and what propagation made of it."""
    before, after = (folder / f"step-{layers}.{stage}.mlir" for stage in ("stablehlo", "sdy"))
    if not after.exists():
        script = folder / "step" / "step.py"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(re.sub(r"LAYERS = (.*), \d+$", rf"LAYERS = \1, {layers}", STEP.read_text(), flags=re.M))
        environment = {
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "TPU_SKIP_MDS_QUERY": "1",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        }
        command = [sys.executable, "-c", MAKE, str(script.parent), str(before), str(after)]
        subprocess.run(command, check=True, env=environment)
    return before, after


def measured(before: Path, after: Path) -> list[tuple[str, float, str]]:
    """What is done, how long it takes, and what comes of it."""
    from shardscope.inspector.capture.model import Capture, Stage
    from shardscope.inspector.ir.program import Program
    from shardscope.inspector.pipeline import inspect
    from shardscope.inspector.shardings.conflicts import conflicts
    from shardscope.inspector.shardings.explained import why
    from shardscope.inspector.shardings.table import borders, propagated, values
    from shardscope.inspector.shardings.why import replay_of
    from shardscope.parsers.mlir import parse_module
    from shardscope.parsers.source import Source

    sources = {stage: Source(stage, path.read_bytes()) for stage, path in (("stablehlo", before), ("sdy", after))}
    program = Program(
        Capture(stages=tuple(Stage(name, "mlir", source) for name, source in sources.items()), complete=True)
    )
    found: list[tuple[str, float, str]] = []

    def timed(what: str, work: Callable[[], object], told: Callable[[object], str] = lambda _: "") -> object:
        start = time.process_time()
        result = work()
        found.append((what, time.process_time() - start, told(result)))
        return result

    def many(result: object) -> str:
        return f"{len(result):,}"  # type: ignore[arg-type]

    timed("count the operations by name", lambda: parse_module(sources["sdy"]).opcode_counts(), many)
    timed("arguments, outputs, constraints", lambda: borders(program), many)
    timed("all values", lambda: values(program), many)
    listed = values(program)
    timed("the first way back", lambda: why(program, listed[-1], 200))
    some = listed[:: max(len(listed) // 1000, 1)]
    timed(f"{len(some):,} further ones", lambda: [why(program, value, 200) for value in some])
    timed("all conflicts", lambda: conflicts(program), many)
    _, flow = propagated(program)
    assert flow is not None
    timed("the replay", lambda: replay_of(flow), lambda replay: f"{len(replay.steps):,} steps")  # type: ignore[attr-defined]
    timed("the report, with all findings", lambda: inspect(program))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=Path("build/bench"))
    parser.add_argument("--measure", nargs=2, type=Path)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(*options.measure)))
        return
    before, after = made(options.folder, options.layers)
    lines = before.read_bytes().count(b"\n")
    print(
        f"{options.layers} layers: {lines:,} lines of StableHLO, {after.stat().st_size / 1e6:.0f} MB after propagation"
    )
    command = [sys.executable, __file__, "--measure", str(before), str(after)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    results = json.loads(done.stdout)
    base = results[0][1]
    print("| | seconds | to reading | |\n|---|--:|--:|---|")
    for what, seconds, told in results:
        print(f"| {what} | {seconds:.2f} | {seconds / base:.1f}x | {told} |")


if __name__ == "__main__":
    main()
