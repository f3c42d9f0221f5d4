"""Nodes by which texts are compared, operations of a graph in any language, and their pairs in two texts.

Pairs start from some known ones. Matched are, in this order: operations with the same cone of operands, where there is
one such on each side; operands at the same place, and only users, of what is matched already; what is most alike, where
nothing else is as much. What is left has no counterpart, and none is made up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from ...parsers.errors import readable
from ...parsers.hlo import Instruction
from ...parsers.mlir import Operation
from ...parsers.record import Record
from ..ir.def_use import DefUse, near
from ..report.changes import Facing, Node
from ..units import grouped

O = TypeVar("O", Instruction, Operation)  # noqa: E741


class Graph(Record, Generic[O], frozen=True, eq=False):
    """The operations that may use each other's results, by the names of these: of one computation, one block.

    Nodes are made when they are asked for; what cannot be read is none.
    """

    operations: Sequence[O]
    uses: DefUse[str, O]
    read: Callable[[O], Node]
    _nodes: dict[int, Node | None] = msgspec.field(default_factory=dict)

    def at(self, offset: int) -> Node | None:
        """The operation whose text holds that byte."""
        operation = self._at(offset)
        return None if operation is None else self._node(operation)

    def near(self, start: Node, steps: int, most: int) -> list[Node]:
        """Return the nodes within a few steps, in text order."""
        operation = self._at(start.span.start)
        found = [] if operation is None else near(self.uses, operation, steps, most)
        return in_text_order([node for each in found if (node := self._node(each)) is not None])

    def _at(self, offset: int) -> O | None:
        place = bisect_right(self.operations, offset, key=lambda operation: operation.span.start) - 1
        is_inside = place >= 0 and offset < self.operations[place].span.end
        return self.operations[place] if is_inside else None

    def _node(self, operation: O) -> Node | None:
        place = operation.span.start
        if place not in self._nodes:
            self._nodes[place] = readable(lambda: self.read(operation))
        return self._nodes[place]


AnyGraph = Graph[Instruction] | Graph[Operation]


def in_text_order(nodes: Collection[Node]) -> list[Node]:
    """Sort by position."""
    return sorted(nodes, key=lambda node: node.span.start)


ALIKE = 0.6
"""The part of what is compared that has to agree for two operations to be taken for one."""


def facings(
    known: Iterable[tuple[Node, Node]], ones: Sequence[Node], others: Sequence[Node], alone: str | None = None
) -> tuple[Facing, ...]:
    """Return the pairs in the order of the text after, the rest at their old position; `alone` has no counterpart."""
    return tuple(_in_order(ones, others, _Matching(known, ones, others, alone).found))


class _Matching:
    """The pairs, found stage by stage."""

    def __init__(
        self,
        known: Iterable[tuple[Node, Node]],
        ones: Sequence[Node],
        others: Sequence[Node],
        alone: str | None = None,
    ) -> None:
        self.found: dict[str, str] = {}
        self._taken = {alone}
        self._ones, self._others = ({each.name: each for each in side} for side in (ones, others))
        self._users = [_users_of(side) for side in (ones, others)]
        for one, other in known:
            if one.name in self._ones and other.name in self._others:
                self._pair(one, other)
        self._by_cone()
        self._by_context()
        while self._most_alike():
            self._by_context()

    def _pair(self, one: Node, other: Node) -> bool:
        if one.name in self.found or other.name in self._taken:
            return False
        self.found[one.name] = other.name
        self._taken.add(other.name)
        return True

    def _by_cone(self) -> None:
        cones = [_cones(side) for side in (self._ones, self._others)]
        counts = [Counter(side.values()) for side in cones]
        where = {cone: name for name, cone in cones[1].items()}
        for name, cone in cones[0].items():
            if counts[0][cone] == counts[1][cone] == 1:
                self._pair(self._ones[name], self._others[where[cone]])

    def _by_context(self) -> None:
        waiting = list(self.found.items())
        while waiting:
            name, facing = waiting.pop()
            for one, other in (*self._operands(name, facing), *self._only_users(name, facing)):
                if one.opcode == other.opcode and self._pair(one, other):
                    waiting.append((one.name, other.name))

    def _operands(self, name: str, facing: str) -> Iterator[tuple[Node, Node]]:
        sides = self._ones[name].operands, self._others[facing].operands
        if len(sides[0]) == len(sides[1]):
            for one, other in zip(*sides, strict=True):
                if one in self._ones and other in self._others:
                    yield self._ones[one], self._others[other]

    def _only_users(self, name: str, facing: str) -> Iterator[tuple[Node, Node]]:
        left = [each for each in self._users[0].get(name, ()) if each.name not in self.found]
        right = [each for each in self._users[1].get(facing, ()) if each.name not in self._taken]
        for one in left:
            alike = [other for other in right if other.opcode == one.opcode]
            if len(alike) == 1 and sum(each.opcode == one.opcode for each in left) == 1:
                yield one, alike[0]

    def _most_alike(self) -> bool:
        """Pair those that are most alike each other, and nothing else as much; False where there are none."""
        scores = [
            (self._likeness(one, other), one, other)
            for one in self._ones.values()
            if one.name not in self.found
            for other in self._others.values()
            if other.name not in self._taken and other.opcode == one.opcode
        ]
        best = grouped(
            (key, score) for score, one, other in scores for key in (("before", one.name), ("after", other.name))
        )
        # The highest score, if there is but one such.
        tops = {key: max(each) for key, each in best.items() if each.count(max(each)) == 1}
        chosen = [
            (one, other)
            for score, one, other in scores
            if score >= ALIKE and tops.get(("before", one.name)) == tops.get(("after", other.name)) == score
        ]
        # Each is in one of them only, so none stands in another's way.
        for one, other in chosen:
            self._pair(one, other)
        return bool(chosen)

    def _likeness(self, one: Node, other: Node) -> float:
        """The part of type, attributes and neighbours that agree."""
        agreeing = [one.type == other.type]
        keys = one.attributes.keys() | other.attributes.keys()
        agreeing += [one.attributes.get(key) == other.attributes.get(key) for key in keys]
        agreeing += [
            self.found.get(first) == second for first, second in zip(one.operands, other.operands, strict=False)
        ]
        mine = {self.found.get(user.name) for user in self._users[0].get(one.name, ())}
        theirs = {user.name for user in self._users[1].get(other.name, ())}
        agreeing += [bool(mine & theirs)] if mine or theirs else []
        return sum(agreeing) / len(agreeing)


def _in_order(ones: Sequence[Node], others: Sequence[Node], found: Mapping[str, str]) -> Iterator[Facing]:
    back = {after: before for before, after in found.items()}
    by_name = {each.name: each for each in ones}
    waiting = list(ones)
    for other in others:
        one = by_name.get(back.get(other.name, ""))
        if one is None:
            yield Facing(None, other)
            continue
        while waiting and waiting[0].span.start < one.span.start:
            left = waiting.pop(0)
            if left.name not in found:
                yield Facing(left, None)
        waiting = [each for each in waiting if each is not one]
        yield Facing(one, other, _is_same(one, other, found))
    yield from (Facing(left, None) for left in waiting if left.name not in found)


def _is_same(one: Node, other: Node, found: Mapping[str, str]) -> bool:
    """They do the same, to operands that are matched or beyond what was looked at."""
    facing = [found.get(first, second) == second for first, second in zip(one.operands, other.operands, strict=False)]
    return one.does == other.does and len(one.operands) == len(other.operands) and all(facing)


def _cones(side: Mapping[str, Node]) -> dict[str, int]:
    """For each instruction the hash of what it does to what, as far as is looked; operands stand before their users."""
    cones: dict[str, int] = {}
    for name, each in side.items():
        cones[name] = hash((each.does, *(cones.get(operand) for operand in each.operands)))
    return cones


def _users_of(side: Sequence[Node]) -> dict[str, list[Node]]:
    return grouped((operand, each) for each in side for operand in dict.fromkeys(each.operands))
