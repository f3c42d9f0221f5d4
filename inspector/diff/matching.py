"""Pairs of collectives in two lowerings: the rules, from the strictest to the loosest.

Those with the same work go together first, so that no more is called changed than has to be; then those that carry the
same operands, in as many pieces as there are on either side. What is left pairs where it stands at the same place, or
moves the same bytes over the same axes, or is the only one of its kind that is left. The rest is not matched.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..report.changes import CollectiveSignature, Counted, Pair, Transfer
from .pairing import Rule, Unambiguous, pair_up
from .regrouping import Regrouping, regroup


def _at_line(*details: Callable[[CollectiveSignature], Hashable]) -> Callable[[Transfer], Hashable]:
    """The line, where one is known: what nothing is known of is at no place that another could be at."""

    def key(one: Transfer) -> Hashable:
        line = one.place.frames[0]
        return None if line == ("", "") else (line, one.place.direction, *(each(one.work) for each in details))

    return key


def _kind(work: CollectiveSignature) -> Hashable:
    return work.kind, work.reduction


def _axes(work: CollectiveSignature) -> Hashable:
    """Over which axes; for groups that none form, who talks to whom."""
    return work.partners if work.axes is None else work.axes


def _moved(one: Transfer) -> Hashable:
    """The same transfer, run more or less often, or otherwise."""
    work = one.work
    return _kind(work), _axes(work), work.dtypes, work.bytes_in, work.bytes_out, one.place.direction


def _other_kind(one: Transfer) -> Hashable:
    """The operands are equal, the results are not."""
    work = one.work
    if work.bytes_in is None:
        return None
    return _axes(work), work.dtypes, work.bytes_in, work.executions, one.place.direction


def _same_shapes(one: Transfer) -> Hashable:
    """Another dtype, on a line whose text changed."""
    work = one.work
    return one.place.frames[0][0], one.place.direction, _kind(work), _axes(work), _sizes(one)


def _sizes(one: Transfer) -> Hashable:
    """Return the operands' element counts before and after; their types where a count is unknown."""
    return tuple((each.elements_in, each.elements_out) for each in one.operands) or one.types


def _in_another_pass(one: Transfer) -> Hashable:
    """The same transfer as by `_moved`, as when it leaves the loop that it was differentiated in."""
    work = one.work
    return _kind(work), _axes(work), work.dtypes, work.bytes_in, work.bytes_out


def _of_function(one: Transfer) -> Hashable:
    """The same bytes over other axes, on a line whose text changed."""
    work, function = one.work, one.place.frames[0][0]
    return (function, one.place.direction, _kind(work), work.dtypes, work.bytes_in) if function else None


SAME: tuple[Rule[Transfer], ...] = (
    lambda one: one,
    lambda one: (one.work, one.place.frames[0], one.place.direction),
    lambda one: (one.work, one.place.direction),
    lambda one: one.work,
)

LOOSE: tuple[Rule[Transfer] | Unambiguous[Transfer], ...] = (
    _at_line(_kind, _axes),
    _moved,
    _at_line(_kind),
    Unambiguous(_at_line(_axes)),
    _same_shapes,
    _other_kind,
    _in_another_pass,
    Unambiguous(_of_function),
    Unambiguous(lambda one: (_kind(one.work), _axes(one.work), one.place.direction)),
)


def match(before: Counted, after: Counted) -> tuple[tuple[Pair[Transfer], ...], tuple[Regrouping, ...]]:
    """Pair collectives that do the same; and list all others, with what replaced them: nothing, or something else."""
    found = pair_up(before, after, SAME)
    left = tuple((pair.before, pair.count) for pair in found if pair.before is not None and pair.after is None)
    right = tuple((pair.after, pair.count) for pair in found if pair.after is not None and pair.before is None)
    regroupings, left, right = regroup(left, right)
    changed = (
        Regrouping(_alone(pair.before), _alone(pair.after), pair.count, exact=False)
        for pair in pair_up(left, right, LOOSE)
    )
    same = tuple(pair for pair in found if pair.before is not None and pair.after is not None)
    return same, (*changed, *regroupings)


def _alone(transfer: Transfer | None) -> Counted:
    return () if transfer is None else ((transfer, 1),)
