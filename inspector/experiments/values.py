"""Equality of a changed program's numbers: by runs on CPU devices with the same inputs, or in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ..capture.model import Capture, Execution, OutputSummary
from ..capture.one_device import AMPLIFIED
from ..capture.process import evaluated
from ..capture.protocol.request import Request
from ..ir.types import jax_type
from ..report import Values
from ..values.distances import ROUNDING, apart, distance

_BY_WEIGHT: tuple[Values, ...] = ("differ", "not compared", "close")

NEAR = 1e-2
"""Relative distance, in norm, up to which the results that rounded arguments move most decide about the others."""


MOST_CHANGED = 0.1
"""Share of the change of an argument by which that of another program may differ: a step is small beside what it
changes, and may be one of twice the gradient for all that the norm of the result says."""

LEAST_CHANGE = {"f64": 1e-14, "f32": 3e-7}
"""Relative distance, in norm, that is no change: the rounding of a result."""


class Comparison(NamedTuple):
    """The results of two runs, and in which way those that differ do."""

    values: Values
    changes: tuple[str, ...] = ()


def compared(
    before: Execution | None,
    after: Execution | None,
    rounding: float = 0.0,
    nudged: Callable[[], Execution | None] = lambda: None,
) -> Comparison:
    """Return whether two runs gave the same results, as far as the recorded values show, or but for such a rounding.

    `nudged` runs the program before with arguments changed by rounding, if most results are near. A result is close if
    that moves it as far, be it noise, as an optimizer's step of a gradient that is zero but for rounding; or, of those
    that differ little, another one.
    """
    if before is None or after is None:
        return Comparison("not compared")
    if len(before.outputs) != len(after.outputs):
        return Comparison("differ", (f"{len(before.outputs)} results → {len(after.outputs)}",))
    pairs = [(one, other, rounding) for one, other in zip(before.outputs, after.outputs, strict=True)]
    near = sum(_of_one(one, other, ROUNDING["bf16"]) != "differ" for one, other, _ in pairs)
    moved = nudged() if _worst(pairs) == "differ" and 2 * near > len(pairs) else None
    if moved is not None and len(moved.outputs) == len(pairs):
        far = [AMPLIFIED * _relative(*each) for each in zip(before.outputs, moved.outputs, strict=True)]
        most = max((each for each in far if each <= AMPLIFIED * NEAR), default=0.0)
        pairs = [
            (one, other, max(rounding, min(NEAR, most), own)) for (one, other, _), own in zip(pairs, far, strict=True)
        ]
    values = _worst(pairs)
    is_plain = values == "close" and not rounding  # an optimizer may make much of what a narrower type rounds away
    others = list(_changed_otherwise(before, after, nudged)) if is_plain else []
    if others:
        return Comparison("differ", tuple(f"by how much {path} changes" for path in others))
    return Comparison(values, tuple(_changes(pairs)) if values == "differ" else ())


def _changed_otherwise(before: Execution, after: Execution, nudged: Callable[[], Execution | None]) -> Iterator[str]:
    """The paths of results that are near to an argument, but not as far from it, if that is no effect of rounding."""
    far = _changes_apart(before, after, after)
    moved = nudged() if far else None
    if moved is None or len(moved.outputs) != len(before.outputs):
        return
    by_rounding = _changes_apart(before, moved, after)
    yield from (before.outputs[n].path for n, by in far.items() if AMPLIFIED * by_rounding.get(n, 0.0) < by)


def _changes_apart(one: Execution, other: Execution, given: Execution) -> dict[int, float]:
    """By result how far two changes of arguments are apart, as a share of the first, where that is much.

    Those of the first run are `given`. Of each result it is the argument of its type that is nearest.
    """
    arguments: dict[str, list[tuple[Sequence[float], Sequence[float]]]] = {}
    for pair in zip(given.arguments, other.arguments, strict=False):
        arguments.setdefault(pair[0].type, []).append((_products(pair[0]), _products(pair[1])))
    found = {}
    for number, (result, changed) in enumerate(zip(one.outputs, other.outputs, strict=True)):
        ends = _products(result), _products(changed)
        steps = [tuple(map(_less, ends, starts)) for starts in arguments.get(result.type, ()) if all((*ends, *starts))]
        if result.projections is None or changed.type != result.type or not steps:
            continue
        first, second = min(steps, key=lambda pair: max(map(abs, pair[0])))
        size, between = max(map(abs, first)), max(map(abs, _less(first, second)))
        norm = result.projections[0]
        least = LEAST_CHANGE.get(jax_type(result.type).dtype, math.inf) * norm
        if least < between > MOST_CHANGED * size and size < MOST_CHANGED * norm:
            found[number] = between / size if size else math.inf
    return found


def _products(value: OutputSummary) -> Sequence[float]:
    """The products of an array with the random vectors, which add up as arrays do; none where they are not known."""
    return (value.projections or ())[1:]


def _less(one: Sequence[float], other: Sequence[float]) -> Sequence[float]:
    return [a - b for a, b in zip(one, other, strict=True)]


def is_unstable(before: Execution | None, moved: Execution | None) -> bool:
    """Return whether arguments that are changed by rounding move results so far that their distance says nothing."""
    if before is None or moved is None or len(before.outputs) != len(moved.outputs):
        return False
    return any(AMPLIFIED * _relative(*each) > NEAR for each in zip(before.outputs, moved.outputs, strict=True))


def _worst(pairs: Iterable[tuple[OutputSummary, OutputSummary, float]]) -> Values:
    found = {_of_one(*pair) for pair in pairs}
    return next((each for each in _BY_WEIGHT if each in found), "equal")


def _relative(one: OutputSummary, other: OutputSummary) -> float:
    """The distance of two arrays, by the norm of the first."""
    far = apart(one, other)
    return 0.0 if not far or not one.projections or not one.projections[0] else far / one.projections[0]


def for_numbers(request: Request, *, gentle: bool = False) -> Request:
    """The request with what a comparison needs, and without what it does not.

    `gentle` inputs keep more programs finite: see `Request`.
    """
    plain = replace(request, probe="none", reference=False, passes="", gradients=False)
    return replace(plain, is_trial=True, fingerprints=True, gentle=gentle)


def is_finite(run: Execution) -> bool:
    """Return whether all results of a run can be compared: none has an element that is not finite."""
    return all(not each.non_finite and each.digest is not None for each in run.outputs)


def _of_one(one: OutputSummary, other: OutputSummary, rounding: float) -> Values:
    if jax_type(one.type) != jax_type(other.type):
        return "differ"
    if one.digest is None or other.digest is None or one.non_finite or other.non_finite:
        return "differ" if one.non_finite != other.non_finite else "not compared"
    if one.digest == other.digest:
        return "equal"
    found = distance(one, other, rounding)
    return "not compared" if found is None else "close" if found <= 1 else "differ"


def _changes(pairs: list[tuple[OutputSummary, OutputSummary, float]]) -> Iterator[str]:
    for one, other, rounding in pairs:
        if jax_type(one.type) != jax_type(other.type):
            yield f"{one.path} {jax_type(one.type)} → {jax_type(other.type)}"
        elif _of_one(one, other, rounding) == "differ":
            norms = [each.projections[0] for each in (one, other) if each.projections is not None]
            yield f"{one.path}, its norm {norms[0]:.4g} → {norms[1]:.4g}" if len(norms) == 2 else one.path


SECONDS = 10.0
"""Seconds in which a program has to be evaluated."""

DIGITS = 9
"""Significant digits of the projections of an output that do not depend on the order of sums."""


def evaluated_results(captured: Capture, case: Path) -> Execution | None:
    """The results of a captured program, whose case is in a folder, as those of a run.

    None where it was not evaluated, or is not what its source says.
    """
    validation, _ = evaluated(case, SECONDS, values=False)
    if validation.status != "same" or len(validation.outputs) != len(captured.outputs):
        return None
    outputs = []
    for output, value in zip(validation.outputs, captured.outputs, strict=True):
        projections = output.projections
        digest = None if projections is None else " ".join(f"{each:.{DIGITS}g}" for each in projections)
        non_finite = int(output.path in validation.not_finite)
        outputs.append(
            OutputSummary(value.path, value.type, None, non_finite=non_finite, digest=digest, projections=projections)
        )
    return Execution(tuple(outputs))
