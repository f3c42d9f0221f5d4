"""XLA passes that change communication, or anything, from the files that XLA writes between passes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from ...parsers.record import Record
from ..catalog.spellings import FUSED, HLO_OPCODES, STARTS
from ..units import format_bytes, plural
from .events import pass_snapshot
from .model import Message, PassSnapshot

MAX_BYTES = 1 << 28
"""Bytes of the texts that are kept of one module."""

_COMPRESSED = re.compile(r"\.(?:gz|xz|bz2|zst)\Z")
_PASS = re.compile(r"(?:(.*)\.)?\d{4}\.([^/]+?)\.after_([^/]+?)(?:\.before_([^/]+?))?\.(?:txt|hlo\.pb)")
"""XLA's name of a module between two passes: the module, the pipeline, the pass before, and the one that follows."""

_CALLED = "|".join(re.escape(prefix) for _, prefix in FUSED)
_COLLECTIVE = re.compile(
    rb"^ *+(?:ROOT )?+%?[\w.\-]++ = (.*?) ("
    + "|".join(map(re.escape, (*HLO_OPCODES, *STARTS))).encode()
    + rb"|fusion(?=\(.*\bcalls=%?(?:"
    + _CALLED.encode()
    + rb")))\((.*+)",
    re.M,
)
_LAYOUT = re.compile(rb"(?<=\])\{[^}]*+\}")
_PARTNERS = re.compile(
    rb"\b(?:replica_groups|source_target_pairs)=(?:\{.*?\}\}|\{\}|[^,]*\[[\d,]*\](?:T\([\d,]*\))?|\S+)"
)

PIPELINE_START = "pipeline-start"

PassFile = tuple[str, Callable[[], bytes]]
"""The name of a file, and what reads it."""


def place_of(file: str) -> tuple[str, str, str] | None:
    """The pipeline, the pass before and the one after, by the name of a file; None where it is no such file's."""
    found = _match(file)
    return None if found is None else (found[2], found[3], found[4] or "")


class Snapshots(Record, frozen=True):
    """The module after each pass that makes a change, and right before it; how many changes there was no room for."""

    kept: tuple[PassSnapshot, ...]
    left_out: int

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that the report shows about the passes."""
        if not self.left_out:
            return ()
        text = f"{plural(self.left_out, 'pass')} not shown: the texts before have {format_bytes(MAX_BYTES)}"
        return (Message("warning", text, "compile"),)


def in_workspace(folder: Path, *, every: bool) -> Snapshots:
    """Return the snapshots that the compiler wrote of the largest module."""
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.txt")):
        if (found := _match(path.name)) is not None:
            files.setdefault(found[1], []).append(path)
    largest = max(files.values(), key=lambda paths: sum(path.stat().st_size for path in paths), default=[])
    return snapshots(((path.name, path.read_bytes) for path in largest), every=every)


def snapshots(files: Iterable[PassFile], *, every: bool = False) -> Snapshots:
    """Yield the passes that change communication, or with `every` each pass that changes anything."""
    kept: list[PassSnapshot] = []
    size = left_out = 0
    for snapshot in _around_changes(files, bytes if every else communication):
        size += len(snapshot.stage.source.data)
        if size <= MAX_BYTES:
            kept.append(snapshot)
        else:
            left_out += snapshot.changes
    return Snapshots(tuple(kept), left_out)


def _around_changes(files: Iterable[PassFile], signature_of: Callable[[bytes], object]) -> Iterator[PassSnapshot]:
    ordered = sorted(files, key=lambda file: PurePosixPath(file[0]).name)
    named = [(place, read) for name, read in ordered if (place := place_of(name)) is not None]
    places = [place for place, _ in named]
    before: PassSnapshot | None = None
    signature: object = None
    for number, (_, read) in enumerate(named):
        data = read()
        found = signature_of(data)
        changes = signature is not None and found != signature
        snapshot = pass_snapshot(*pass_before(places, number), changes, data)
        if changes:
            if before is not None:
                yield before
            yield snapshot
        before, signature = None if changes else snapshot, found


def pass_before(places: Sequence[tuple[str, str, str]], number: int) -> tuple[str, str]:
    """The pipeline and the pass that made a module what it is.

    At the start of a pipeline that is the pass that runs the pipeline; what is written next of the pipeline around it
    is written after that pass.
    """
    pipeline, name, _ = places[number]
    if name == PIPELINE_START and number:
        around = places[number - 1][0]
        name, pipeline = next(((n, p) for p, n, _ in places[number:] if p == around), (name, pipeline))
    return pipeline, name


def communication(data: bytes) -> Counter[tuple[bytes, ...]]:
    """Return what a module of HLO communicates, without names: opcodes, types and partners, with counts."""
    return Counter(
        (match[2], _LAYOUT.sub(b"", match[1]), *_PARTNERS.findall(match[3])) for match in _COLLECTIVE.finditer(data)
    )


def _match(file: str) -> re.Match[str] | None:
    return _PASS.fullmatch(_COMPRESSED.sub("", PurePosixPath(file).name))
