"""Modules at several stages: in a folder that XLA or JAX dumped to, or one after the other in a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...parsers.source import Source
from ...parsers.text.modules import Part, language
from .model import STAGES, Capture, CaptureError, Message, Stage

LARGEST = 1 << 32
"""Bytes; a larger text is refused."""

MOST_NAMES = 20
"""Modules that are named beside the one that is shown."""

_MODULE = re.compile(r"module_\d+\.[\w.\-]*?(?=\.\d{4}\.|\.(?:\w+_)?(?:before|after)_|\Z)|jax_ir\d+_.*(?=_\w+\.mlir)")
"""How XLA, and JAX, name a module in the names of files and folders: `module_0007.jit_step`, `jax_ir0003_jit_step`."""

_FILES = {
    "stablehlo": re.compile(r"00\.input_module\.mlir|jax_ir\d+_.*_compile\.mlir"),
    "sdy": re.compile(r"02\.after_propagation\.mlir|sdy_module_after_sdy_export\.mlir"),
    "hlo-before": re.compile(r".*[._]before_(?:spmd-partitioning|optimizations)\.txt"),
    "hlo-spmd": re.compile(r".*\.after_spmd-partitioning\.before_.*\.txt"),
    "hlo": re.compile(r".*\.(?:\w+_)?after_optimizations\.txt"),
}
"""Names of files in a dump, by the stage that they hold (XLA, xla/service/dump.cc; jax_dump_ir_to of JAX)."""


@dataclass(frozen=True, slots=True)
class Text:
    """One module at one stage, which is only read if it is shown."""

    size: int
    read: Callable[[], Source]


Modules = dict[str, dict[str, Text]]
"""The texts of modules, by the module's name and the stage."""


def in_folder(folder: Path) -> Modules:
    """The modules in a folder and those below it; raises CaptureError where there is none."""
    modules: Modules = {}
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    for path in paths:
        for stage in _stages(path.name):
            found = _MODULE.match(path.name) or _MODULE.match(path.parent.name)
            text = Text(path.stat().st_size, partial(_source, path, str(path.relative_to(folder))))
            # Two files of `hlo-before` may be there; the one right before the partitioner sorts first.
            modules.setdefault(found[0] if found else path.parent.name, {}).setdefault(stage, text)
    if not modules:
        raise CaptureError(f"{folder} holds no dump of XLA's or JAX's; a single text can be opened by its own path")
    return modules


def in_text(source: Source, parts: Sequence[Part]) -> Modules:
    """The modules that some parts of a text are.

    Those of one name are one module at several stages, and another where a stage comes again: programs print
    StableHLO first, and then what it is compiled to. Of the files that XLA prints, those are left out that hold none.
    """
    modules: Modules = {}
    times: Counter[str] = Counter()
    for part in [part for part in parts if _stages(part.file)] or parts:
        data = source.data[part.span.start : part.span.end]
        if language(data) is None:
            continue
        found = _MODULE.match(part.file)
        name = found[0] if found else part.name or "module"
        for stage in _stages(part.file) or [stage_of(data)]:
            key = _numbered(name, times[name])
            if stage in modules.get(key, {}) and not part.file:
                times[name] += 1
                key = _numbered(name, times[name])
            text = Text(len(data), partial(Source, f"{source.name}[{key}]", data))
            modules.setdefault(key, {}).setdefault(stage, text)
    return modules


def capture_of(modules: Modules, wanted: str | None, where: str) -> Capture:
    """The stages of one module: the one that is wanted, else the largest; raises CaptureError if it is not there."""
    if wanted is not None and wanted not in modules:
        raise CaptureError(f"{where} holds no module {wanted!r}, but {_list(sorted(modules))}")
    chosen = wanted or max(modules, key=lambda name: sum(text.size for text in modules[name].values()))
    others = sorted(set(modules) - {chosen})
    note = f"this is {chosen}; --module opens another: {_list(others)}"
    stages = sorted(modules[chosen].items(), key=lambda item: list(STAGES).index(item[0]))
    return Capture(
        stages=tuple(Stage(name, STAGES[name], text.read()) for name, text in stages),
        messages=(Message("info", note, "start"),) if others else (),
        complete=True,
    )


def stage_of(data: bytes) -> str:
    """The stage that a text looks like."""
    if language(data) == "hlo":
        return "hlo-before" if b"HloModule" in data and b"is_scheduled=true" not in data[: 1 << 16] else "hlo"
    propagated = b"sdy.propagation_edges" in data or b"sdy.sharding_origins" in data
    return "sdy" if propagated else "stablehlo"


def read(path: Path) -> bytes:
    """What is in a file; raises CaptureError."""
    try:
        if path.stat().st_size > LARGEST:
            raise CaptureError(f"{path} is larger than {LARGEST >> 30} GiB")
        return path.read_bytes()
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error


def _source(path: Path, name: str) -> Source:
    return Source(name, read(path))


def _stages(file: str) -> list[str]:
    return [stage for stage, pattern in _FILES.items() if pattern.fullmatch(file)]


def _numbered(name: str, times: int) -> str:
    return f"{name} ({times + 1})" if times else name


def _list(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
