"""The private folder of a running capture, and where XLA's stages are in it.

The process in front made the folder, reads there what a process that died can no longer send, and removes it. What
XLA says it writes to file descriptor 2, past Python's `sys.stderr`.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from .events import Level, Message, Phase
from .stages import PASSES, STAGES

COMPILER_LOG = "compiler.log"
"""Everything that was written to file descriptor 2 while the compiler ran."""

FAULT_LOG = "fault.log"
"""The Python stack of a crash, written by faulthandler."""

WAITING = "waiting"
"""The folder of the case of a program whose devices wait for each other (`case.py`)."""

SOURCE = "propagation.mlir"
"""The StableHLO whose shardings are propagated again, to find their origins."""

DUMP = "dump"
"""The folder to which XLA writes its stages."""

MAX_OWN = 1 << 20
"""Bytes of the StableHLO of a program whose shardings the capturing process propagates itself."""

OPTIMIZED = r".*after_optimizations\.txt"
LIVE_RANGES = r".*after_optimizations-live-range\.txt"
BEFORE_PROPAGATION = r"01\.before_propagation\.mlir"

KEPT = ("behind.hlo", "before.mlir", "after.mlir")
"""The names that Shardy's files have beside a saved capture."""

SCHEDULE = b"HloLiveRange "
AFTER_PEAK = b"Stack trace breakdown"
"""Around the schedule, when each value is alive, and which are at the peak (xla/service/buffer_assignment.cc,
hlo_live_range.cc)."""

EVERY_PASS = ".*"


def compiler_options(folder: str, passes: str = PASSES, *, in_full: bool = False) -> dict[str, str | bool]:
    """The options of one compilation that make XLA write the stages to `folder`, around the `passes` of these names.

    Large constants are written out `in_full`, or left out.

    Not `shardy-verbose`, which would add the origins of shardings: XLA crashes under it on a shard_map in a loop.
    """
    options: dict[str, str | bool] = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": passes}
    return {**options, "xla_dump_large_constants": True} if in_full else options


def find_stages(folder: str) -> dict[str, Path]:
    """The files of the stages written so far. Of several modules the largest counts: the others are parts of it."""
    files = _files(folder)
    found = {name: _largest_of(files, kind.dumped) for name, kind in STAGES.items() if kind.dumped}
    return {name: path for name, path in found.items() if path is not None}


def find_propagation(folder: str) -> tuple[Path, Path, Path] | None:
    """Shardy's own files: the HLO behind it, and the module before propagation and after it."""
    after = find_stages(folder).get("sdy")
    before = None if after is None else _largest(str(after.parent), BEFORE_PROPAGATION)
    if after is None or before is None:
        return None
    hlo = _largest(folder, rf"{re.escape(after.parent.name)}\..*\.after_shardy-xla\..*\.txt")
    return None if hlo is None else (hlo, before, after)


def keep_propagation(folder: str, capture: Path) -> None:
    """Copy Shardy's own files to a folder beside a saved capture."""
    for name, path in zip(KEPT, find_propagation(folder) or (), strict=False):
        kept = _beside(capture) / name
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(without_constants(path.read_bytes()))


def kept_propagation(capture: Path) -> tuple[Path, Path, Path] | None:
    """Shardy's own files, where they were kept."""
    behind, before, after = (_beside(capture) / name for name in KEPT)
    return (behind, before, after) if after.is_file() else None


def drop_propagation(capture: Path) -> None:
    """Remove them, once what they give is in the capture."""
    shutil.rmtree(_beside(capture), ignore_errors=True)


def _beside(capture: Path) -> Path:
    return capture.with_name(f"{capture.name}.shardy")


def read_stages(folder: str) -> dict[str, bytes]:
    """The texts of the stages that were written."""
    return {name: without_constants(path.read_bytes()) for name, path in find_stages(folder).items()}


MAX_ELEMENTS = 8192
"""Elements of a constant whose values are written out in a text."""

_CONSTANT = re.compile(rb'dense<"0x[0-9A-Fa-f]{%d,}+">(?= : tensor<([\dx]+)x\D)' % (MAX_ELEMENTS // 4))
"""One that may be larger: a digit has four elements of one bit, and fewer of others."""


def without_constants(text: bytes) -> bytes:
    """A module of MLIR without the values of large constants, which XLA writes out in its dumps."""
    return _CONSTANT.sub(_elided, text)


def _elided(constant: re.Match[bytes]) -> bytes:
    is_large = math.prod(map(int, constant[1].split(b"x"))) > MAX_ELEMENTS
    return b"dense_resource<__elided__>" if is_large else constant[0]


def read_optimized(folder: str) -> str | None:
    """The optimized program as XLA wrote it."""
    path = _largest(folder, OPTIMIZED)
    return None if path is None else path.read_text("utf-8", "replace")


def read_peak(folder: str) -> bytes | None:
    """XLA's live ranges: the schedule, when each value is alive, and what is alive when most memory is taken."""
    path = _largest(folder, LIVE_RANGES)
    text = b"" if path is None else path.read_bytes()
    start = text.find(SCHEDULE)
    return None if start < 0 else text[start:].partition(AFTER_PEAK)[0].rstrip() + b"\n"


def _largest(folder: str, pattern: str) -> Path | None:
    return _largest_of(_files(folder), pattern)


def _files(folder: str) -> list[Path]:
    return sorted(path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())


def _largest_of(files: Iterable[Path], pattern: str) -> Path | None:
    found = [path for path in files if re.fullmatch(pattern, path.name)]
    return max(found, key=lambda path: path.stat().st_size, default=None)


MAX_MESSAGES = 500
MAX_MESSAGE_CHARACTERS = 16_000

# W1121 06:14:37.827144   18479 spmd_partitioner.cc:656] text      (absl/log, also `E0000 00:00:1732167891.123456 …`)
# 2026-11-21 07:10:29.321446: W external/xla/xla/service/spmd/spmd_partitioner.cc:656] text      (JAX 0.7)
_LOGGED = re.compile(
    r"^(?:(?P<level>[IWEF])\d{4} \S+\s+\d+ |\d{4}-\d\d-\d\d \S+: (?P<old_level>[IWEF]) )"
    r"(?:[\w.-]+/)*(?P<place>[\w.-]+:\d+)\] ?",
    re.MULTILINE,
)
_LEVELS: dict[str, Level] = {"I": "info", "W": "warning", "E": "error", "F": "error"}


@contextmanager
def diverted(path: Path | str) -> Iterator[None]:
    """Send file descriptor 2 to a file."""
    _flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield
    finally:
        _flush()
        os.dup2(kept, 2)
        os.close(file)
        os.close(kept)


def _flush() -> None:
    with suppress(Exception):  # the script may have put anything in its place
        sys.stderr.flush()


def read_messages(path: Path, phase: Phase) -> list[Message]:
    """The messages in such a file; a message goes on until the next one's head."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_MESSAGES * MAX_MESSAGE_CHARACTERS).decode("utf-8", "replace")
    except OSError:
        return []
    unique = {(message.text, message.location): message for _, message in split_log(text, phase)}
    return [replace(m, text=m.text[:MAX_MESSAGE_CHARACTERS]) for m in unique.values()][:MAX_MESSAGES]


def fatal_message(text: str) -> tuple[str, str] | None:
    """Return the message of a failed check that ended the process, and its place in XLA; None if there is none."""
    found = [message for level, message in split_log(text) if level == "F"]
    return (found[-1].text.partition("\n")[0], found[-1].location or "") if found else None


def split_log(text: str, phase: Phase = "compile") -> Iterator[tuple[str, Message]]:
    """The log's own letter for the level, and the message, for each piece of a text."""
    heads = list(_LOGGED.finditer(text))
    if before := text[: heads[0].start() if heads else None].strip():
        yield "I", Message("info", before, phase)
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        level = head["level"] or head["old_level"]
        yield level, Message(_LEVELS[level], text[head.end() : end].strip(), phase, location=head["place"])
