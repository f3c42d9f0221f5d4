"""The results of a program after compilation, compared with those before it."""

from __future__ import annotations

import re

import numpy as np

from ..capture.protocol.values import ComparedOutput
from .case import Case, Output
from .collectives import OnDevices
from .element_types import PRECISION, Array, Value
from .errors import NotEvaluatedError

TOLERANCE = 1e-5
"""Largest difference, relative to the largest element, that constants folded in 32 bits explain."""

LEAST_SCALE = 1e-9
"""Share of the largest element of all arguments and outputs to which the differences of smaller outputs relate."""


def results_of(values: OnDevices, count: int) -> list[OnDevices]:
    """The results of a program with so many, each on all devices.

    Raises:
        NotEvaluatedError: the program has another number of results.
    """
    rows = [flat(value) for value in values]
    if (count == 1 and len(rows[0]) == 1) or all(len(row) == count for row in rows):
        return [list(column) for column in zip(*rows, strict=True)]
    raise NotEvaluatedError(f"{len(rows[0])} results for {count} outputs")


def flat(value: Value) -> list[Array]:
    """The arrays of a value, those of a tuple in order."""
    if isinstance(value, tuple):
        return [part for each in value for part in flat(each)]
    return [value]


def compare(case: Case, expected: list[OnDevices], found: list[OnDevices]) -> tuple[ComparedOutput, ...]:
    """Each output on each device with the block of it that the device should have."""
    least = _least(case, expected)
    return tuple(
        _compared(output, [value[block] for value, block in zip(whole, output.blocks, strict=True)], parts, scale)
        for output, whole, parts in zip(case.outputs, expected, found, strict=True)
        for scale in (max(_scale(whole[0]), least),)
    )


def compare_whole(case: Case, expected: list[OnDevices], found: list[OnDevices]) -> tuple[ComparedOutput, ...]:
    """The same of a program that is not partitioned yet: all of each output on each device."""
    least = _least(case, expected)
    return tuple(
        _compared(output, whole, parts, max(_scale(whole[0]), least))
        for output, whole, parts in zip(case.outputs, expected, found, strict=True)
    )


def _compared(output: Output, expected: list[Array], found: list[Array], scale: float) -> ComparedOutput:
    error, elements, differing = 0.0, 0, []
    known: dict[tuple[int, int], tuple[float, int]] = {}
    for device, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        if given is None:
            raise NotEvaluatedError(f"device {device} does not give {output.path}")
        if given.shape != wanted.shape:
            raise NotEvaluatedError(f"{output.path} has shape {given.shape} on device {device}, not {wanted.shape}")
        key = id(given), wanted.__array_interface__["data"][0] if wanted.size else 0
        if key not in known:
            known[key] = _distance(wanted, given, scale)
        distance, count = known[key]
        error = max(error, distance)
        if distance > TOLERANCE:
            elements = max(elements, count)
            differing.append(device)
    first = found[differing[0]] if differing else None
    is_alike = len(differing) == len(found) and all(
        each is first or np.array_equal(each, first, equal_nan=True) for each in found
    )
    return ComparedOutput(
        output.path,
        output.shape,
        error,
        tuple(differing),
        elements,
        expected[0].size,
        scale,
        is_alike,
        _projections(output, found),
    )


def _projections(output: Output, parts: list[Array]) -> tuple[float, float, float] | None:
    """The norm of an output that is put together from its blocks, and its products with two fixed random vectors."""
    whole: Array = np.zeros(output.shape, parts[0].dtype)
    if whole.dtype.kind == "c":
        return None
    for part, block in zip(parts, output.blocks, strict=True):
        if part.shape != whole[block].shape:  # the program is not partitioned yet
            return None
        whole[block] = part
    flat = np.nan_to_num(whole.astype(np.float64)).reshape(-1)
    random = np.random.default_rng(0)
    first, second = (float(flat @ random.standard_normal(flat.size)) for _ in range(2))
    return float(np.linalg.norm(flat)), first, second


def _least(case: Case, expected: list[OnDevices]) -> float:
    """The least scale of an output: what is smaller by far than others is the rounding of a sum that is zero."""
    arrays = [*case.values, *(whole[0] for whole in expected)]
    return LEAST_SCALE * max((_scale(each) for each in arrays if each.dtype.kind in "fc"), default=0.0)


def _scale(array: Array) -> float:
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind in "fc" else np.abs(array.astype(np.float64))
    return float(finite.max(initial=0.0)) or 1.0


def _distance(wanted: Array, given: Array, scale: float) -> tuple[float, int]:
    """The largest difference in multiples of `scale`, infinite if one is not finite; how many elements differ.

    A NaN before compilation may become anything: zero times NaN is one of what algebra takes for zero.
    """
    if wanted.dtype.kind not in "fc" or given.dtype.kind not in "fc":
        apart = wanted != given
        largest = np.abs(wanted.astype(np.float64) - given.astype(np.float64)).max(initial=0.0)
        return (max(float(largest) / scale, 2 * TOLERANCE) if apart.any() else 0.0), int(apart.sum())
    with np.errstate(all="ignore"):
        distance = np.abs(given - wanted) / scale
    same = (given == wanted) | np.isnan(wanted)
    distance = np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))
    return float(distance.max(initial=0.0)), int((distance > TOLERANCE).sum())


_CONSTANT = re.compile(r"= (bf16|f16|f8\w+)\[[\d,]*\](?:\{[^}]*\})? constant\(([^)\n]{1,200})\)")


def narrowest_folded(case: Case) -> str | None:
    """The narrowest type of a constant that only the compiled program has: its rounding is part of the program."""
    before = set(_CONSTANT.findall(case.source))
    found = {name for name, text in _CONSTANT.findall(case.optimized) if (name, text) not in before}
    return max(found, key=lambda name: PRECISION.get(name, 2**-4), default=None)


def folding_error(name: str | None) -> float:
    """The largest difference that constants folded in a type explain."""
    return TOLERANCE if name is None else max(TOLERANCE, 4 * PRECISION.get(name, 2**-4))
