"""What a capture leaves in its private folder while it runs, and how to find XLA's stages among it.

The process in front made the folder, reads there what a process that died can no longer send, and removes it. File
names of stages are XLA's (xla/service/dump.cc) and carry the passes before and after:
`module_0007.jit_f.0001.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt`; Shardy's own snapshots lie in
`shardy/module_0007.jit_f/02.after_propagation.mlir`.
"""

from __future__ import annotations

import re
from pathlib import Path

COMPILER_LOG = "compiler.log"
"""What was written to file descriptor 2 while the compiler ran."""

FAULT_LOG = "fault.log"
"""The Python stack of a crash, written by faulthandler."""

DUMP = "dump"
"""The folder to which XLA writes its stages."""

PROFILE = "profile"
"""The folder that JAX's profiler writes to."""

PASSES = "shardy-xla|spmd-partitioning"

STAGE_FILES: dict[str, re.Pattern[str]] = {
    "sdy": re.compile(r"02\.after_propagation\.mlir"),
    "hlo-before": re.compile(r".*\.before_(?:tpu-)?spmd-partitioning\.txt"),
    "hlo-spmd": re.compile(r".*\.after_(?:tpu-)?spmd-partitioning\.before_.*\.txt"),
}

OPTIMIZED = re.compile(r".*after_optimizations\.txt")
LIVE_RANGES = re.compile(r".*after_optimizations-live-range\.txt")

PEAK = b"Live ranges at "
AFTER_PEAK = b"Stack trace breakdown"
"""Around the values that are alive at the peak (xla/service/buffer_assignment.cc, hlo_live_range.cc)."""


def compiler_options(folder: str) -> dict[str, str]:
    """The options of one compilation that make XLA write the stages to `folder`.

    Not `shardy-verbose`, which would add the origins of shardings: XLA crashes under it on a shard_map in a loop.
    """
    return {"xla_dump_to": folder, "xla_dump_hlo_pass_re": PASSES}


def find_stages(folder: str) -> dict[str, Path]:
    """The files of the stages written so far. Of several modules the largest counts: the others are parts of it."""
    found = {name: _largest(folder, pattern) for name, pattern in STAGE_FILES.items()}
    return {name: path for name, path in found.items() if path is not None}


def read_stages(folder: str) -> dict[str, bytes]:
    """The texts of the stages that were written."""
    return {name: path.read_bytes() for name, path in find_stages(folder).items()}


def read_optimized(folder: str) -> str | None:
    """The optimized program as XLA wrote it."""
    path = _largest(folder, OPTIMIZED)
    return None if path is None else path.read_text("utf-8", "replace")


def read_peak(folder: str) -> bytes | None:
    """The part of XLA's live ranges that lists what is alive when most memory is taken."""
    path = _largest(folder, LIVE_RANGES)
    text = b"" if path is None else path.read_bytes()
    start = text.find(PEAK)
    return None if start < 0 else text[start:].partition(AFTER_PEAK)[0].rstrip() + b"\n"


def _largest(folder: str, pattern: re.Pattern[str]) -> Path | None:
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
    found = [path for path in files if pattern.fullmatch(path.name)]
    return max(found, key=lambda path: path.stat().st_size, default=None)
