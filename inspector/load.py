"""Captures from what lies on disk: saved captures, single texts, and folders that XLA dumped to."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ..parsers.errors import ParseError, Problem
from ..parsers.language import language, other_format
from ..parsers.restored import restored
from ..parsers.source import Source, Span
from .capture import file
from .capture.errors import CaptureError
from .capture.model import STAGES, Capture, Message, Stage

GZIP = b"\x1f\x8b"

LARGEST = 1 << 32
"""Bytes; a larger text is refused."""

_MODULE = re.compile(r"module_\d+\.[\w.\-]*?(?=\.\d{4}\.|\.(?:\w+_)?(?:before|after)_|\Z)")
"""How XLA names a module in the names of its files and folders: `module_0007.jit_step`."""

_FILES = {
    "stablehlo": re.compile(r"00\.input_module\.mlir"),
    "sdy": re.compile(r"02\.after_propagation\.mlir|sdy_module_after_sdy_export\.mlir"),
    "hlo-before": re.compile(r".*[._]before_(?:spmd-partitioning|optimizations)\.txt"),
    "hlo-spmd": re.compile(r".*\.after_spmd-partitioning\.before_.*\.txt"),
    "hlo": re.compile(r".*\.(?:\w+_)?after_optimizations\.txt"),
}
"""Names of files in a dump, by the stage that they hold (XLA, xla/service/dump.cc)."""


def load(path: str, module: str | None = None) -> Capture:
    """What a path holds; `-` is standard input. `module` is the one to take from a folder that holds several.

    Raises:
        CaptureError: there is nothing to read at this path.
        ParseError: it holds a text that is neither HLO nor MLIR.
    """
    if path == "-":
        return _capture_of(Source("<stdin>", sys.stdin.buffer.read()))
    place = Path(path)
    if place.is_dir():
        return _dump(place, module)
    data = _read(place)
    return file.load(place) if data.startswith(GZIP) else _capture_of(Source(path, data))


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise CaptureError(f"{path} is larger than {LARGEST >> 30} GiB")
        return path.read_bytes()
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error


def _capture_of(source: Source) -> Capture:
    """A capture with the one stage that a text is, as far as the text itself tells."""
    data, done = restored(source.data)
    source = Source(source.name, data) if done else source
    dialect = language(data)
    if dialect is None:
        line = Span(0, max(data.find(b"\n"), 1))
        message = other_format(data) or "this is neither HLO nor MLIR text, nor a saved capture"
        raise ParseError(Problem(message, source, line, ("'HloModule'", "'module'")))
    if dialect == "hlo":
        name = "hlo-before" if b"HloModule" in data and b"is_scheduled=true" not in data[: 1 << 16] else "hlo"
    else:
        propagated = b"sdy.propagation_edges" in data or b"sdy.sharding_origins" in data
        name = "sdy" if propagated else "stablehlo"
    notes = tuple(Message("info", f"of {source.name}, {words}", "start") for words in done)
    return Capture(stages=(Stage(name, dialect, source),), messages=notes, complete=True)


def _dump(folder: Path, module: str | None) -> Capture:
    """The stages of one module in a folder of dumps: of the one that is named, else of the largest."""
    modules: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            for stage in (name for name, pattern in _FILES.items() if pattern.fullmatch(path.name)):
                found = _MODULE.match(path.name) or _MODULE.match(path.parent.name)
                stages = modules.setdefault(found[0] if found else path.parent.name, {})
                # Both files of `hlo-before` may be there; the one right before the partitioner sorts first.
                stages.setdefault(stage, path)
    if not modules:
        raise CaptureError(f"{folder} holds no dump that XLA wrote; a single text can be opened by its own path")
    if module is not None and module not in modules:
        raise CaptureError(f"{folder} holds no module {module!r}, but {', '.join(sorted(modules))}")
    chosen = module or max(modules, key=lambda name: sum(path.stat().st_size for path in modules[name].values()))
    others = sorted(set(modules) - {chosen})
    note = f"this is {chosen}; --module opens another: {', '.join(others)}"
    return Capture(
        stages=tuple(
            Stage(name, STAGES[name], Source(str(path.relative_to(folder)), _read(path)))
            for name, path in sorted(modules[chosen].items(), key=lambda item: list(STAGES).index(item[0]))
        ),
        messages=(Message("info", note, "start"),) if others else (),
        complete=True,
    )
