"""Functions that were compiled more than once, and what differs between the calls that made JAX do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...parsers.record import Record
from ..capture.protocol.trace import CompiledProgram, ProgramArgument
from .trace import Program, Trace

MAX_DIFFERENCES = 8
MAX_PATHS = 3
MAX_COMPARED = 50
"""Programs of one function, compiled before another, of which the nearest to it is looked for."""

MAX_STRUCTURE = 60
"""Characters of a structure of arguments, from the first that differs."""


class Retraced(Record, frozen=True):
    """The programs of one function of a process, in the order in which they were compiled.

    `reasons` are, for each program but the first, its differences from the one before that is nearest to it, as text.
    """

    name: str
    programs: tuple[Program, ...]
    reasons: tuple[tuple[str, ...], ...]

    @property
    def compile_seconds(self) -> float:
        """Seconds of all of its compilations but the first."""
        return sum(program.compiled.compile_seconds for program in self.programs[1:])


def retraced(trace: Trace) -> tuple[Retraced, ...]:
    """The user's functions that were compiled more than once; what cost most comes first."""
    groups: dict[object, list[Program]] = {}
    for program in trace.merged:
        if not program.compiled.internal and not program.compiled.transformed:
            groups.setdefault((program.process, program.compiled.name, program.compiled.source), []).append(program)
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


def _text(argument: ProgramArgument, other: ProgramArgument) -> str:
    """Return the parts of an argument that may differ."""
    words = [argument.type] if argument.type != other.type or argument.weak != other.weak else []
    if argument.weak != other.weak:
        words.append("weak" if argument.weak else "not weak")
    if argument.spec != other.spec:
        words.append(argument.spec or "unspecified sharding")
    elif argument.mesh != other.mesh:
        words.append(f"{argument.spec} on mesh {argument.mesh or 'unknown'}")
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
