"""Pairs of counted items on two sides, by rules from the strictest to the loosest.

By each rule, what the ones before left is paired within equal keys, in order. Some rules are good only where nothing
else could be meant: they pair what is left of a key when that is one kind of thing on each side. What no rule pairs is
not matched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Generic

from ...parsers.record import Record
from ..report.changes import Pair, T
from ..units import grouped

Rule = Callable[[T], Hashable | None]
"""The key that two items must share to be paired; None for items that a rule does not pair."""


class Unambiguous(Record, Generic[T], frozen=True):
    """A rule that pairs nothing where several things that are left have the same key."""

    rule: Rule[T]


def pair_up(
    before: Sequence[tuple[T, int]], after: Sequence[tuple[T, int]], rules: Sequence[Rule[T] | Unambiguous[T]]
) -> tuple[Pair[T], ...]:
    """Pair all of them, those without a counterpart with None; what only the first side has comes last."""
    left, right = [count for _, count in before], [count for _, count in after]
    found: dict[tuple[int, int], int] = {}
    for each in rules:
        rule = each.rule if isinstance(each, Unambiguous) else each
        waiting, arriving = _by_key(before, left, rule), _by_key(after, right, rule)
        for key, seconds in arriving.items():
            firsts = waiting.get(key)
            if firsts is None or (isinstance(each, Unambiguous) and (len(firsts) > 1 or len(seconds) > 1)):
                continue
            queue = deque(firsts)
            for second in seconds:
                while queue and right[second]:
                    paired = min(left[queue[0]], right[second])
                    found[second, queue[0]] = found.get((second, queue[0]), 0) + paired
                    right[second] -= paired
                    left[queue[0]] -= paired
                    if not left[queue[0]]:
                        queue.popleft()
    pairs: list[tuple[int, Pair[T]]]
    pairs = [(second, Pair(before[first][0], after[second][0], n)) for (second, first), n in found.items()]
    pairs += [(second, Pair(None, after[second][0], n)) for second, n in enumerate(right) if n]
    ordered = [pair for _, pair in sorted(pairs, key=lambda pair: pair[0])]
    return (*ordered, *(Pair(before[first][0], None, n) for first, n in enumerate(left) if n))


def _by_key(side: Sequence[tuple[T, int]], remaining: Sequence[int], rule: Rule[T]) -> dict[Hashable, list[int]]:
    left = ((number, thing) for number, (thing, _) in enumerate(side) if remaining[number])
    return grouped((key, number) for number, thing in left if (key := rule(thing)) is not None)
