"""How long `shardscope run` takes, beside a bare script that imports, traces, lowers and compiles the same function.

    python benchmarks/run.py [-n REPEATS] [--python PYTHON …] [SCRIPT.py:FUNCTION …]

The commands take turns, so that all of them meet the same machine. Of each, the table gives medians: seconds on the
clock, and seconds of processor time of all its processes, with their ratios to the bare script's; when the first stage
was on the screen; when the text of the default began; and the most memory that one of its processes took. Bytecode is
kept, as it is where shardscope is installed.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "running"
SAMPLES = Path(__file__).parents[1] / "samples"
FUNCTIONS = (
    f"{SAMPLES}/fsdp_tp.py:grad",
    f"{SAMPLES}/transformer.py:train_step",
    f"{HERE}/flax_step.py:step",
)
LARGE = (f"{HERE}/layers.py:dense_step", f"{HERE}/layers.py:moe_step")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {
    "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "false",
}


@dataclass(frozen=True)
class Spent:
    """Seconds on the clock, of all processors, and until the first output; bytes of the largest process."""

    wall: float
    cpu: float
    first: float
    memory: int


def spent(command: list[str]) -> Spent:
    """What a command took until its end, with the processes that it started and waited for."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=ENVIRONMENT)
        assert process.stdout is not None
        output = os.read(process.stdout.fileno(), 1)
        first = time.perf_counter() - started
        while output:
            output = os.read(process.stdout.fileno(), 1 << 16)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{errors.read().decode()}")
    return Spent(wall, usage.ru_utime + usage.ru_stime, first, usage.ru_maxrss * 1024)


def first_stage(command: list[str]) -> float:
    """Seconds until a screen goes on to what comes after the first stage, the jaxpr."""
    started = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "50"})
    seen = b""
    try:
        while b"lowering" not in seen and b"compiling" not in seen and time.perf_counter() - started < 120:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 1 << 16)
        return time.perf_counter() - started
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def measured(python: str, function: str, repeats: int) -> str:
    """One row of the table."""
    run = [str(Path(python).parent / "shardscope"), "run", function]
    commands = {
        "bare": [python, str(HERE / "bare.py"), function],
        "no live": [*run, "--no-live", "--try", "0", "--format", "text"],
        "live": [*run, "--try", "0", "--format", "text"],
        "default": [*run, "--format", "text"],
    }
    times: dict[str, list[Spent]] = {name: [] for name in commands}
    stages = []
    for _ in range(repeats):
        for name, command in commands.items():
            times[name].append(spent(command))
        stages.append(first_stage([*run, "--no-live", "--format", "tui"]))

    def middle(name: str, what: str) -> float:
        return statistics.median(getattr(each, what) for each in times[name])

    cells = [f"{middle('bare', 'wall'):.2f} s, {middle('bare', 'cpu'):.2f} s"]
    for name in ("no live", "live", "default"):
        ratios = (f"**{middle(name, what) / middle('bare', what):.2f}**" for what in ("wall", "cpu"))
        cells.append(f"{middle(name, 'wall'):.2f} s, {middle(name, 'cpu'):.2f} s; {', '.join(ratios)}")
    cells += [f"{statistics.median(stages):.2f} s", f"{middle('default', 'first'):.2f} s"]
    cells.append(" / ".join(f"{middle(name, 'memory') / 1e6:.0f}" for name in commands))
    return f"| {Path(function).name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="default: samples, a Flax step; `large` for large models")
    parser.add_argument("-n", type=int, default=5, help="how often each command is run")
    parser.add_argument("--python", action="append", help="of an environment that has shardscope and jax")
    asked = parser.parse_args()
    for python in asked.python or [sys.executable]:
        version = subprocess.run(
            [python, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True, check=True
        )
        print(f"\nJAX {version.stdout.strip()}, medians of {asked.n}: seconds on the clock, of processors; ratios\n")
        columns = ("bare", "`run --no-live --try 0`", "`run --try 0`", "`run`, which tries fixes")
        print(f"| function | {' | '.join(columns)} | first stage on the screen | text begins | MB of memory |")
        print("|---|---|---|---|---|---|---|---|")
        for function in LARGE if asked.functions == ["large"] else asked.functions or FUNCTIONS:
            print(measured(python, function, asked.n), flush=True)


if __name__ == "__main__":
    main()
