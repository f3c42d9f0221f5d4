"""Modules at several stages: in a folder or an archive of what XLA or JAX dumped, or one after the other in a text."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from ...parsers.mlir.spacing import in_printers_layout
from ...parsers.record import Record
from ...parsers.source import Source
from ...parsers.text.modules import Part, binary_format, exported_bytecode, language
from .children import run
from .environment import NoJaxError, interpreter_with_jax
from .model import STAGES, Capture, CaptureError, Message, Stage, UnreadableFileError
from .packed import Allowance, unpacked, whole
from .passes import place_of, snapshots
from .protocol import bootstrap
from .protocol.stages import stages_named

MAX_BYTES = 1 << 32
"""Bytes; a larger text is refused."""

MAX_WRAPPINGS = 3
"""Maximum nesting depth of compressed files that is unpacked."""

MAX_NAMES = 20
"""Modules that are named beside the one that is shown."""

_MODULE = re.compile(r"module_\d+\.[\w.\-]*?(?=\.\d{4}\.|\.(?:\w+_)?(?:before|after)_|\Z)|jax_ir\d+_.*(?=_\w+\.mlir)")
"""Names that XLA and JAX give to the files and folders of a module: `module_0007.jit_step`, `jax_ir0003_jit_step`."""

_COMPRESSED = re.compile(r"\.(?:gz|xz|bz2|zst)\Z")

_COMMUNICATES = re.compile(rb" (?:all-|collective-|reduce-scatter|ragged-all)[a-z-]*+\(")
_PARTITIONED = re.compile(rb"^ENTRY %?[\w.\-]*_spmd\b", re.MULTILINE)
"""The partitioner names computations so (XLA, xla/service/spmd/spmd_partitioner.cc)."""


class File(Record, frozen=True):
    """A file of a folder or of an archive, by its path in there."""

    name: str
    size: int
    read: Callable[[], bytes]


class Text(Record, frozen=True):
    """One module at one stage, which is only read if it is shown."""

    size: int
    read: Callable[[], Source]


Modules = dict[str, dict[str, Text]]
"""The texts of modules, by the module's name and the stage, or the file that XLA wrote between two passes."""


def in_folder(folder: Path, python: str | None) -> Modules:
    """The modules in a folder and those below it; raises CaptureError where there is none."""
    paths = filter(is_regular, sorted(folder.rglob("*")))
    files = [File(path.relative_to(folder).as_posix(), path.stat().st_size, partial(read, path)) for path in paths]
    modules = _in_files(files, python, Allowance(sum(file.size for file in files)))
    if not modules:
        raise CaptureError(f"{folder} has no dump of XLA or JAX; open a single text by its own path")
    return modules


def in_archive(name: str, files: Sequence[File], python: str | None, allowance: Allowance) -> Modules:
    """The modules in a zip archive: those of a dump, else of each text; raises CaptureError where there is none."""
    modules = _in_files(files, python, allowance)
    for file in () if modules else files:
        data = unpacked(f"{name}/{file.name}", file.read(), allowance)
        if language(data) is not None:
            modules[file.name] = {stage_of(data): Text(len(data), partial(Source, file.name, data))}
    if not modules:
        raise CaptureError(f"{name} has neither a module nor a dump of XLA or JAX")
    return modules


def plain(name: str, data: bytes, python: str | None, allowance: Allowance) -> bytes:
    """The text in a file: unpacked, and printed where it is no text. Raises CaptureError."""
    for _ in range(MAX_WRAPPINGS):
        inner = unpacked(name, data, allowance)
        if inner is data:
            break
        data = inner
    return text_of(name, data, python)


def _in_files(files: Iterable[File], python: str | None, allowance: Allowance) -> Modules:
    modules: Modules = {}
    # The same module may be there as text and as a protocol buffer.
    for file in sorted(files, key=lambda file: (file.name.endswith(".pb"), file.name)):
        path = PurePosixPath(file.name)
        for stage in (*_stages_in(path.name), *([path.name] if place_of(path.name) else [])):
            found = _MODULE.match(path.name) or _MODULE.match(path.parent.name)
            text = Text(file.size, partial(_source, file, python, allowance))
            # Two files of `hlo-before` may be there; the one right before the partitioner sorts first.
            modules.setdefault(found[0] if found else path.parent.name or path.name, {}).setdefault(stage, text)
    return modules


def _source(file: File, python: str | None, allowance: Allowance) -> Source:
    return Source(file.name, plain(file.name, file.read(), python, allowance))


def _bytes(text: Text) -> bytes:
    return text.read().data


def in_text(source: Source, parts: Sequence[Part]) -> Modules:
    """The modules that some parts of a text are.

    Those of one name are one module at several stages, and another where a stage comes again: programs print
    StableHLO first, and then what it is compiled to. Of the files that XLA prints, those are left out that hold none.
    """
    modules: Modules = {}
    times: Counter[str] = Counter()
    for part in [part for part in parts if _stages_in(part.file)] or parts:
        data = source.data[part.span.start : part.span.end]
        if language(data) is None:
            continue
        found = _MODULE.match(part.file)
        name = found[0] if found else part.name or "module"
        for stage in _stages_in(part.file) or [stage_of(data)]:
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
    note = f"this is {chosen}; --module opens another: {_list(others)}" if others else ""
    texts = modules[chosen]
    passes = [(name, text) for name, text in texts.items() if name not in STAGES]
    stages = [(name, texts[name].read()) for name in STAGES if name in texts]
    if not stages:
        last = max(passes)[1].read()
        stages = [(stage_of(last.data), last)]
    found = snapshots((name, partial(_bytes, text)) for name, text in passes)
    return Capture(
        stages=tuple(stage_with(name, text) for name, text in stages),
        passes=found.kept,
        messages=(*((Message("info", note, "start"),) if note else ()), *found.messages),
        complete=True,
        foreign=True,
    )


def stage_with(name: str, source: Source) -> Stage:
    """A stage with a text of others; MLIR in the layout of its printer."""
    dialect = STAGES[name].dialect
    return Stage(name, dialect, in_printers_layout(source) if dialect == "mlir" else source)


def stage_of(data: bytes, name: str = "") -> str:
    """The stage that a text looks like, or that its name tells."""
    if named := _stages_in(PurePosixPath(name).name):
        return named[0]
    if language(data) == "hlo":
        if b"HloModule" not in data or b"is_scheduled=true" in data[: 1 << 16]:
            return "hlo"
        if _PARTITIONED.search(data):
            return "hlo-spmd"
        # What communicates though nothing is sharded is what each device runs.
        return "hlo-spmd" if b"sharding=" not in data and _COMMUNICATES.search(data) else "hlo-before"
    propagated = b"sdy.propagation_edges" in data or b"sdy.sharding_origins" in data
    return "sdy" if propagated else "stablehlo"


def place_among_passes(name: str, data: bytes) -> str:
    """In words, between which passes XLA wrote a text; empty where neither its name nor its header says so."""
    if found := place_of(name):
        pipeline, after, following = found
        before = f", before {following!r}" if following else ""
        return f"the module after pass {after!r} of {pipeline!r}{before}"
    if language(data) == "hlo" and b"HloModule" not in data and not _stages_in(PurePosixPath(name).name):
        return "there is no HloModule line: the stage is unknown; it is read as the compiled program"
    return ""


def is_regular(path: Path) -> bool:
    """Return whether a path in an untrusted folder is a file of that folder: no link, no pipe, no device."""
    return path.is_file() and not path.is_symlink()


def read(path: Path) -> bytes:
    """Return the contents of a file; raises CaptureError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise CaptureError(f"{path} is larger than {MAX_BYTES >> 30} GiB")
        with path.open("rb") as stream:
            return whole(str(path), stream)
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error


def _stages_in(file: str) -> list[str]:
    return stages_named(_COMPRESSED.sub("", file))


def _numbered(name: str, times: int) -> str:
    return f"{name} ({times + 1})" if times else name


def _list(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


TIMEOUT_S = 120.0
_LONGEST_REASON = 500


def text_of(name: str, data: bytes, python: str | None) -> bytes:
    """Return the text of a module that is a protocol buffer or bytecode; all other data as it is.

    `python` is the interpreter whose jaxlib prints it; None is the first one with JAX.

    Raises:
        CaptureError: jaxlib cannot read it, or there is none.
    """
    what = binary_format(data)
    if what is None:
        return data
    try:
        interpreter = interpreter_with_jax(python)
    except NoJaxError as error:
        raise UnreadableFileError(f"{name} is {what}, which jaxlib reads: {error}") from error
    try:
        done = run(bootstrap.command(interpreter, "binaries"), exported_bytecode(data) or data, TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or f"timed out after {TIMEOUT_S:.0f} s"
        raise CaptureError(f"{name} is {what}, and {interpreter} cannot print it: {reason}") from error
    if done.status == 0:
        return done.stdout
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = lines[-1][:_LONGEST_REASON] if lines else f"status {done.status}"
    raise UnreadableFileError(
        f"{name} is {what}; the jaxlib of {interpreter} cannot read it ({reason}). --python names another interpreter"
    )
