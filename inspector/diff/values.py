"""The outputs of two runs, or of two evaluated programs: which have the same values, and how far others are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..capture.model import Execution, OutputSummary
from ..ir.types import jax_type
from ..report.changes import OutputChange, ValueComparison
from ..values.distances import distance


def compare_values(before: Execution | None, after: Execution | None) -> ValueComparison | None:
    """Compare the outputs of two runs; None where one did not run, or no output is described on both sides."""
    if before is None or after is None:
        return None
    pairs = list(_pairs(before.outputs, after.outputs))
    if not any(one.digest is not None and other.digest is not None for one, other in pairs):
        return None
    same = [one.digest is not None and one.digest == other.digest and _alike(one, other) for one, other in pairs]
    apart = [None if is_same else _distance(*pair) for pair, is_same in zip(pairs, same, strict=True)]
    inputs = None if before.inputs is None or after.inputs is None else before.inputs == after.inputs
    return ValueComparison(
        equal=sum(same),
        close=sum(each is not None and each <= 1 for each in apart),
        unknown=sum(each is None and not is_same for each, is_same in zip(apart, same, strict=True)),
        differs=tuple(
            OutputChange(*pair, each) for pair, each in zip(pairs, apart, strict=True) if each is not None and each > 1
        ),
        same_inputs=inputs,
    )


def _pairs(
    ones: Sequence[OutputSummary], others: Sequence[OutputSummary]
) -> Iterator[tuple[OutputSummary, OutputSummary]]:
    """By position, or by name where there are more on one side; only of equal shapes."""
    if len(ones) == len(others):
        pairs = list(zip(ones, others, strict=True))
    else:
        known = {each.path: each for each in ones}
        pairs = [(known[each.path], each) for each in others if each.path in known]
    return ((one, other) for one, other in pairs if jax_type(one.type).shape == jax_type(other.type).shape)


def _alike(one: OutputSummary, other: OutputSummary) -> bool:
    return jax_type(one.type).dtype == jax_type(other.type).dtype


def _distance(one: OutputSummary, other: OutputSummary) -> float | None:
    return None if one.digest is None or other.digest is None else distance(one, other)
