"""Functions that were compiled more than once: differences between the calls that made JAX do it, and the programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from ..capture import file
from ..capture.model import CaptureError
from ..capture.protocol.trace import CompiledProgram, Place, Value
from ..correspondence.positions import frames_at
from ..ir.program import Program as ReadProgram
from ..ir.stage import ParsedStage
from ..report.traces import Program, Retraced, Trace
from ..units import grouped

MAX_DIFFERENCES = 8
MAX_PATHS = 3
MAX_COMPARED = 50
"""Programs of one function, compiled before another, of which the nearest to it is looked for."""

MAX_STRUCTURE = 60
"""Characters of a structure of arguments, from the first that differs."""


def retraced(trace: Trace) -> tuple[Retraced, ...]:
    """The user's functions that were compiled more than once; what cost most comes first."""
    own = (each for each in trace.merged if not each.compiled.internal and not each.compiled.transformed)
    groups = grouped(((each.process, each.compiled.name, each.compiled.source), each) for each in own)
    found = [_retraced(group) for group in groups.values() if len(group) > 1]
    return tuple(sorted(found, key=lambda each: -each.compile_seconds))


def _retraced(group: Sequence[Program]) -> Retraced:
    ordered = sorted(group, key=lambda program: program.compiled.number)
    reasons = []
    for number, program in enumerate(ordered[1:], 1):
        before = [other.compiled for other in ordered[max(0, number - MAX_COMPARED) : number][::-1]]
        nearest = min(before, key=lambda other: len(tuple(differences_of(other, program.compiled))))
        reasons.append(why(nearest, program.compiled))
    return Retraced(ordered[0].compiled.name, tuple(ordered), tuple(reasons))


def differences_of(before: CompiledProgram, after: CompiledProgram) -> Iterator[str]:
    """Differences between the calls of two programs of one function; arguments that differ alike are together."""
    olds, news = ({argument.path: argument for argument in each.arguments} for each in (before, after))
    changes: dict[str, list[str]] = {}
    for path in dict.fromkeys((*olds, *news)):
        old, new = olds.get(path), news.get(path)
        if old is None or new is None:
            changes.setdefault(" (new)" if old is None else " (gone)", []).append(path)
        elif old != new:
            changes.setdefault(f": {_text(old, new)} → {_text(new, old)}", []).append(path)
    for change, paths in changes.items():
        rest = len(paths) - MAX_PATHS
        yield f"{', '.join(paths[:MAX_PATHS])}{f' and {rest} more' if rest > 0 else ''}{change}"
    if not changes and (before.structure and after.structure) and before.structure != after.structure:
        yield f"structure of the arguments: {_other_part(before.structure, after.structure)}"
    yield from _named("static ", before.static, after.static)
    yield from _named("bound to ", before.bound, after.bound)
    yield from _named("option ", before.options, after.options, "default ")
    yield from _changed("given by name: ", before.keywords, after.keywords)
    yield from _changed("mesh in context: ", before.context, after.context)
    if before.devices != after.devices:
        yield f"{before.devices} → {after.devices} devices"
    elif before.device_ids != after.device_ids and before.device_ids and after.device_ids:
        yield f"{_devices(before)} → {_devices(after)}"


def why(before: CompiledProgram, after: CompiledProgram) -> tuple[str, ...]:
    """The differences as one reads them; where there are none, what else makes JAX compile again."""
    differences = tuple(differences_of(before, after))
    if differences:
        rest = len(differences) - MAX_DIFFERENCES
        return (*differences[:MAX_DIFFERENCES], *([f"and {rest} more"] if rest > 0 else []))
    if before.cleared != after.cleared:
        return ("jax.clear_caches() was called",)
    if before.function and after.function and before.function != after.function:
        return ("another function object with the same arguments: it is created and jitted again for each",)
    if not (before.function and after.function):
        return ("nothing that is recorded: of a call that lowers ahead of time, static arguments may be unknown",)
    return ("nothing that is recorded",)


def _devices(program: CompiledProgram) -> str:
    shown = ", ".join(map(str, program.device_ids[:MAX_PATHS]))
    return f"device{'s' * (program.devices > 1)} {shown}{', …' * (program.devices > MAX_PATHS)}"


def _text(argument: Value, other: Value) -> str:
    words = [argument.type] if argument.type != other.type or argument.weak != other.weak else []
    if argument.weak != other.weak:
        words.append("weak" if argument.weak else "not weak")
    if argument.spec != other.spec:
        words.append(argument.spec or "unspecified sharding")
    elif argument.mesh != other.mesh:
        words.append(f"{argument.spec or 'type'} on mesh {argument.mesh or 'unknown'}")
    if argument.donated != other.donated:
        words.append("donated" if argument.donated else "not donated")
    return " ".join(words)


def _named(label: str, before: Iterable[str], after: Iterable[str], missing: str = "no ") -> Iterator[str]:
    """Differences of values, each of them written as `name=value`, or as missing."""
    old, new = (dict(each.partition("=")[::2] for each in side) for side in (before, after))
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            texts = (f"{name}={side[name]}" if name in side else f"{missing}{name}" for side in (old, new))
            yield f"{label}{' → '.join(texts)}"


def _other_part(before: str, after: str) -> str:
    same = next((at for at, pair in enumerate(zip(before, after, strict=False)) if len(set(pair)) > 1), 0)
    start = max(0, same - MAX_STRUCTURE // 4)
    parts = (f"{'…' * (start > 0)}{each[start : start + MAX_STRUCTURE]}" for each in (before, after))
    return " → ".join(parts)


def _changed(label: str, before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    old, new = tuple(before), tuple(after)
    if old != new:
        yield f"{label}{', '.join(old) or 'none'} → {', '.join(new) or 'none'}"


LOCATION = re.compile(r'\s*\bloc\((?:[^()"]|"(?:[^"\\]|\\.)*"|\((?:[^()"]|"[^"]*"|\([^()]*\))*\))*\)')
LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python", str(Path(__file__).parents[1]))
"""In the paths of files that are not the user's."""

MAX_TEXT = 160
"""Characters of an operation; constants may have millions."""


class DifferingOperation(NamedTuple):
    """An operation as its program prints it, and the user's line that it comes from."""

    text: str
    place: Place | None


def first_difference(programs: Sequence[Program]) -> tuple[DifferingOperation, ...] | None:
    """In each of these the first operation that one of the others does not have; None if all have the same."""
    stages = [_stage(program) for program in programs]
    texts = [[] if stage is None else _lines(stage) for stage in stages]
    for lines in zip_longest(*texts):
        if len({line and line[0] for line in lines}) > 1:
            width = _common(line[0] if line else "" for line in lines)
            return tuple(
                DifferingOperation("its end", None) if line is None else _operation(stage, line, own, width)
                for stage, line, own in zip(stages, lines, texts, strict=True)
            )
    return None


def _stage(program: Program) -> ParsedStage | None:
    if program.path is None:
        return None
    try:
        return ReadProgram(file.load(program.path)).stage("stablehlo")
    except CaptureError:
        return None


def _lines(stage: ParsedStage) -> list[tuple[str, int]]:
    """The lines of a text without locations, each with its offset."""
    found, offset = [], 0
    for line in stage.source.data.decode("utf-8", "replace").splitlines(keepends=True):
        if line.strip() and not line.startswith("#loc"):
            found.append((LOCATION.sub("", line).strip(), offset + len(line) - len(line.lstrip())))
        offset += len(line.encode())
    return found


def _common(lines: Iterable[str]) -> int:
    least, *_, most = sorted(lines)
    return next((at for at, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), min(len(least), len(most)))


def _operation(
    stage: ParsedStage | None, line: tuple[str, int], lines: Sequence[tuple[str, int]], width: int
) -> DifferingOperation:
    """A long operation is cut so that its difference from the others is seen."""
    assert stage is not None
    text, offset = line
    start = max(width - MAX_TEXT // 2, 0) if len(text) > MAX_TEXT else 0
    shown = f"{'…' if start else ''}{text[start : start + MAX_TEXT]}{'…' if len(text) > start + MAX_TEXT else ''}"
    if "stablehlo.constant" in text:  # it is of no line: where it is used
        name = re.compile(re.escape(text.partition(" = ")[0]) + r"(?![\w#])")
        offset = next((at for other, at in lines if at > offset and name.search(other)), offset)
    own = [frame for frame in frames_at(stage, offset) if not any(folder in frame.file for folder in LIBRARIES)]
    return DifferingOperation(shown, Place(own[0].file, own[0].line) if own else None)
