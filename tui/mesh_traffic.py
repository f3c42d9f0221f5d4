"""Who communicates with whom, in the words of a picture: colours of devices, lines and arrows between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..inspector.report import Collective
from ..parsers.sharding_syntax.replica_groups import Groups
from .palette import hue


@dataclass(frozen=True, slots=True)
class Traffic:
    """The group of each partition, and the (source, target) pairs of a permutation."""

    groups: Groups
    group_of: Mapping[int, int]
    pairs: frozenset[tuple[int, int]] = frozenset()

    def hue(self, partition: int | None) -> str:
        """The colour of a partition's group; dim for one that is in none."""
        group = None if partition is None else self.group_of.get(partition)
        return "$aside" if group is None else hue(group)

    def across(self, one: int | None, other: int | None) -> str:
        """What is drawn between two neighbours in a row."""
        return self._between(one, other, "━→←↔")

    def down(self, one: int | None, other: int | None) -> str:
        """What is drawn between two neighbours in a column."""
        return self._between(one, other, "┃↓↑↕")

    def _between(self, one: int | None, other: int | None, signs: str) -> str:
        if one is None or other is None:
            return " "
        if self.pairs:
            there, back = (one, other) in self.pairs, (other, one) in self.pairs
            return f" {signs[1:]}"[there + 2 * back]
        group = self.group_of.get(one)
        return signs[0] if group is not None and group == self.group_of.get(other) else " "


def traffic_of(collective: Collective) -> Traffic:
    """The traffic of a collective. A permutation's groups are its chains: who receives, at last, from whom."""
    groups = collective.groups or _chains(collective.pairs)
    group_of = {partition: number for number, group in enumerate(groups) for partition in group}
    return Traffic(groups, group_of, frozenset(collective.pairs))


def _chains(pairs: Iterable[tuple[int, int]]) -> Groups:
    """The pairs, end to end; a ring ends with the partition that it began with."""
    targets = dict(pairs)
    starts = [source for source in targets if source not in targets.values()]
    chains = []
    while targets:
        chain = [starts.pop(0) if starts else min(targets)]
        while (target := targets.pop(chain[-1], None)) is not None:
            chain.append(target)
        chains.append(tuple(chain))
    return tuple(chains)
