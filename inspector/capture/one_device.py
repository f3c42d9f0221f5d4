"""Values of a run compared with those of the same function on one device.

Both are captures: in the second, every mesh has one device. Rounding differs between them, as sums are computed in
another order; a third one, on one device with arguments changed by rounding, shows how far that goes in a program.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...parsers.record import Record
from .model import Capture
from .protocol.request import ONE_DEVICE, Request
from .protocol.values import Apart, OutputSummary, Reference

ROUNDINGS = 512
"""Units in the last place, of the norm, by which another order of summing may change a result."""

AMPLIFIED = 16
"""Times the effect of a change by rounding that rounding may have: there are many roundings, at each operation."""

FACTOR_TOLERANCE = 1e-3

RESULT_TOLERANCE = 2e-2
"""Tolerance of the factor of a result, which may be computed in bf16, or be a small change of an argument."""

ROUNDED = 8
"""Units in the last place of an argument's norm by which rounding changes what was added to it."""

MAX_DIFFERENCES = 1000
MAX_DISTANCE = 1e300
"""The distance where JSON has no number for it."""

EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
NARROW_EPSILON = 2.0**-2
"""Machine epsilon of floats with fewer bits."""

_FLOAT = re.compile(r"(?:b?f\d+)(?=[_\[])")
_PLACEMENT = re.compile(r"@[^,\]]+|\{.*\}")
"""In a type, over which axes a dimension is sharded, and a value varies."""


class _Value(Record, frozen=True):
    """A value of a run; floats have projections, others a digest of their bits."""

    apart: Apart
    kind: str
    projections: tuple[float, float, float] | None
    rest: object
    epsilon: float


def on_one_device(request: Request, capture: Capture, *, nudged: bool = False) -> Request:
    """The request for the same function on one device, with as many fake devices around it as the capture has."""
    count = None if capture.subject is None else capture.subject.device_count
    return replace(
        request,
        program=capture.chosen,
        overrides=(*request.overrides, ONE_DEVICE),
        devices=request.devices or count,
        nudged=nudged,
        gradients=False,
        passes="",
        case=None,
    )


def compared(capture: Capture, alone: Capture, nudged: Capture | None = None) -> Reference:
    """The values that differ from those of one device beyond rounding, in program order, and the number compared.

    Values inside the program are told of only where a result differs: what is the same on all devices may well be a
    part of the whole, of which the whole is made later.
    """
    if (reason := _undefined(capture, alone)) is not None:
        return Reference(0, (), reason)
    results, others = list(_results(capture)), list(_results(alone))
    arguments = list(_arguments(alone))
    inner, of_one = list(_inner(capture)), {_key(each): each for each in _inner(alone)}
    again = {} if nudged is None else {_key(each): each for each in (*_inner(nudged), *_results(nudged))}
    pairs = [(one, other) for one, other in zip(results, others, strict=True) if one.kind == other.kind]
    inside = [(one, of_one[_key(one)]) for one in inner if _key(one) in of_one]
    differs = [found for pair in pairs if (found := _apart(*pair, {}, arguments)) is not None]
    kept = [found for pair in pairs if (found := _apart(*pair, again, arguments)) is not None]
    amplified = len(differs) - len(kept)
    if kept:
        kept = [found for pair in inside if (found := _apart(*pair, again)) is not None] + kept
    count = len(pairs) + len(inside)
    return Reference(count, tuple(kept[:MAX_DIFFERENCES]), None, max(0, len(kept) - MAX_DIFFERENCES), amplified)


def _undefined(capture: Capture, alone: Capture) -> str | None:
    """Return why the function cannot be compared with a run on one device; None where it can."""
    if capture.execution is None:
        return "the function did not run"
    if alone.failure is not None:
        stack = alone.failure.stack
        at = f" ({os.path.basename(stack[0].file)}:{stack[0].line})" if stack else ""
        return "it does not run on one device: " + alone.failure.message.partition("\n")[0] + at
    if alone.execution is None:
        said = next((each.text for each in alone.messages if each.text.startswith("no live run")), "")
        return f"it did not run on one device {said}".strip()
    if len(capture.execution.outputs) != len(alone.execution.outputs):
        return "on one device it has other results"
    if capture.execution.inputs != alone.execution.inputs:
        return "on one device it has other arguments: they depend on the mesh"
    return None


def _results(capture: Capture) -> Iterator[_Value]:
    for number, output in enumerate(() if capture.execution is None else capture.execution.outputs):
        yield _of_output(output, Apart((), "output", number, iteration=(), coordinates=(), distance=0.0))


def _arguments(alone: Capture) -> Iterator[_Value]:
    described = () if alone.execution is None else alone.execution.arguments
    for value, summary in zip(alone.arguments, described, strict=False):
        if summary.projections is not None:
            yield _of_output(summary, Apart((), "before", 0, (), (), 0.0, argument=value.path))


def _of_output(output: OutputSummary, apart: Apart) -> _Value:
    dtype = _FLOAT.match(output.type)
    epsilon = EPSILON.get(dtype[0], NARROW_EPSILON) if dtype else 0.0
    rest = output.non_finite if dtype and output.projections is not None else output.digest
    return _Value(apart, _PLACEMENT.sub("", output.type), output.projections if dtype else None, rest, epsilon)


def _inner(capture: Capture) -> Iterator[_Value]:
    for each in capture.summaries:
        apart = Apart(each.path, "after", each.position, each.iteration, (), 0.0, None, each.primitive, each.line)
        yield _Value(apart, f"{each.primitive} {each.shape}", each.projections, rest=each.nans, epsilon=each.epsilon)


def _key(each: _Value) -> tuple[object, ...]:
    place = each.apart
    return (place.path, place.when, place.position, place.iteration, each.kind)


def _apart(
    one: _Value,
    other: _Value,
    nudged: Mapping[tuple[object, ...], _Value],
    arguments: Sequence[_Value] = (),
) -> Apart | None:
    """The value, if it differs by more than rounding explains, and than rounding of the arguments makes it."""
    epsilon = max(one.epsilon, other.epsilon)
    if one.projections is None or other.projections is None:
        distance = 0.0 if one.rest == other.rest else math.inf
        allowed = 0.0
    else:
        distance = math.inf if one.rest != other.rest else _distance(one.projections, other.projections)
        allowed = min(ROUNDINGS * epsilon, math.sqrt(epsilon)) * max(one.projections[0], other.projections[0])
    again = nudged.get(_key(other))
    if again is not None:
        if again.rest != other.rest:
            return None
        if again.projections is not None and other.projections is not None:
            allowed = max(allowed, AMPLIFIED * _distance(again.projections, other.projections))
    if distance <= allowed:
        return None
    times = min(distance / allowed, MAX_DISTANCE) if allowed else MAX_DISTANCE
    factor, argument = _factor(one, other), ""
    if factor is None:
        updates = ((_factor_of_change(one, other, each), each.apart.argument) for each in arguments)
        factor, argument = next((found for found in updates if found[0] is not None), (None, ""))
    return replace(one.apart, distance=times, factor=factor, argument=argument)


def _distance(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _factor(one: _Value, other: _Value) -> float | None:
    """The whole number by which the value of one device is multiplied or divided, if there is one."""
    if one.projections is None or other.projections is None or not other.projections[0]:
        return None
    factor = one.projections[0] / other.projections[0]
    tolerance = RESULT_TOLERANCE if one.apart.when == "output" else FACTOR_TOLERANCE
    for sign in (1.0, -1.0):
        scaled = [sign * factor * each for each in other.projections[1:]]
        apart = max(abs(a - b) for a, b in zip(one.projections[1:], scaled, strict=True))
        if _is_whole(factor, tolerance) and apart <= tolerance * one.projections[0]:
            return sign * factor
    return None


def _factor_of_change(one: _Value, other: _Value, argument: _Value) -> float | None:
    """The same of what was added to an argument: projections are linear, norms are not."""
    if one.kind != argument.kind or None in (one.projections, other.projections, argument.projections):
        return None
    before = (argument.projections or ())[1:]
    changes = [[a - b for a, b in zip((each.projections or ())[1:], before, strict=True)] for each in (one, other)]
    rounding = ROUNDED * one.epsilon * (argument.projections or (0.0,))[0]
    if min(math.hypot(*each) for each in changes) <= rounding / RESULT_TOLERANCE:
        return None
    factor = sum(a * b for a, b in zip(*changes, strict=True)) / sum(each * each for each in changes[1])
    apart = max(abs(a - factor * b) for a, b in zip(*changes, strict=True))
    is_factor = _is_whole(factor, RESULT_TOLERANCE) and apart <= RESULT_TOLERANCE * math.hypot(*changes[0])
    return factor if is_factor else None


def _is_whole(factor: float, tolerance: float) -> bool:
    """Return whether a number, or one divided by it, is a whole one above 1."""
    size = max(abs(factor), 1 / abs(factor)) if factor else 0.0
    return round(size) > 1 and abs(size - round(size)) <= tolerance * size
