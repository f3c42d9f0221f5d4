"""The changes between two lowerings of a program: the Diff, and how two Reports make one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial

from ..report import Report
from ..report.changes import (
    BoundarySharding,
    Change,
    CollectiveSignature,
    Diff,
    Fingerprint,
    Metric,
    Pair,
    Transfer,
)
from . import matching
from .keys import FINDING_RULES, intermediate_changes
from .outline import common_stages, outline
from .pairing import pair_up
from .regrouping import Regrouping
from .surroundings import around
from .values import compare_values


def diff(before: Report, after: Report) -> Diff:
    """Compare two reports at the last stage that both have.

    Raises:
        CaptureError: there is no stage that both have.
    """
    stages = common_stages(before.program, after.program)
    return compare_outlines(outline(before, stages[0]), outline(after, stages[1]))


def compare_outlines(before: Fingerprint, after: Fingerprint) -> Diff:
    """Compare two outlines of the same stage."""
    same, changed = matching.match(before.transfers, after.transfers)
    findings = pair_up(before.findings, after.findings, FINDING_RULES)
    return Diff(
        before=before,
        after=after,
        changes=tuple(sorted(map(_change, changed), key=lambda change: -abs(change.wire_bytes or 0))),
        same=sum(pair.count for pair in same),
        borders=tuple(_border_changes(before.borders, after.borders)),
        insides=intermediate_changes(before.insides, after.insides),
        findings=tuple(pair for pair in findings if pair.before is None or pair.after is None),
        sizes=_amounts(before.sizes, after.sizes),
        costs=tuple(amount for amount in _amounts(before.costs, after.costs) if _is_worth_telling(amount)),
        opcodes=_amounts(before.opcodes, after.opcodes, missing=0),
        values=compare_values(before.execution, after.execution),
        around=partial(around, (before, after), tuple(_unmistakable(same, before, after))),
    )


def _unmistakable(
    same: Iterable[Pair[Transfer]], before: Fingerprint, after: Fingerprint
) -> Iterator[tuple[Transfer, Transfer]]:
    once = [{transfer for transfer, count in side.transfers if count == 1} for side in (before, after)]
    for pair in same:
        if pair.before is not None and pair.after is not None and pair.before in once[0] and pair.after in once[1]:
            yield pair.before, pair.after


def _change(each: Regrouping) -> Change:
    befores, afters = (
        tuple(sorted(side, key=lambda one: -(one[0].work.total_wire or 0))) for side in (each.befores, each.afters)
    )
    if not befores or not afters:
        return Change("removed" if befores else "added", each.count, befores, afters=afters)
    what = _differing(*([one.work for one, _ in side] for side in (befores, afters)))
    return Change("regrouped" if each.exact else "changed", each.count, befores, afters=afters, what=what)


def _differing(ones: Sequence[CollectiveSignature], others: Sequence[CollectiveSignature]) -> tuple[str, ...]:
    sides = (ones, others)
    return tuple(
        f.name
        for f in fields(CollectiveSignature)
        if len({frozenset(getattr(each, f.name) for each in side) for side in sides}) > 1
    )


def _border_changes(
    before: Sequence[BoundarySharding], after: Sequence[BoundarySharding]
) -> list[Pair[BoundarySharding]]:
    """Compare by name; those without a namesake by position, as names may have changed."""
    found = []
    for role in ("argument", "output"):
        ones, others = ([each for each in side if each.role == role] for side in (before, after))
        names = {each.name for each in ones} & {each.name for each in others}
        if len(ones) == len(others):
            pairs: list[tuple[BoundarySharding | None, BoundarySharding | None]] = list(zip(ones, others, strict=True))
        else:
            known = {each.name: each for each in ones}
            pairs = [(known.get(each.name), each) for each in others]
            pairs += [(each, None) for each in ones if each.name not in names]
        found += [Pair(one, other, 1) for one, other in pairs if _layout(one) != _layout(other)]
    return found


def _layout(border: BoundarySharding | None) -> tuple[str, str | None] | None:
    return None if border is None else (border.type, border.spec)


def _is_worth_telling(amount: Metric) -> bool:
    """Estimates that differ by less than one in a thousand are the same."""
    one, other = amount.before, amount.after
    return one is None or other is None or abs(one - other) >= 1e-3 * max(abs(one), abs(other))


def _amounts(
    before: Mapping[str, float], after: Mapping[str, float], missing: float | None = None
) -> tuple[Metric, ...]:
    names = dict.fromkeys((*before, *after))
    found = (Metric(name, before.get(name, missing), after.get(name, missing)) for name in names)
    return tuple(amount for amount in found if amount.before != amount.after)
