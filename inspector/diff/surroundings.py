"""The text around a collective on both sides: which instruction of one is which of the other.

Matched are, in this order: the two collectives themselves; instructions with the same cone of operands, where there is
one such on each side; operands at the same place, and only users, of what is matched already; what is most alike, where
nothing else is as much. What is left has no counterpart, and none is made up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...parsers.errors import ParseError
from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.uses import uses
from ..program import read
from .diff import Change, Diff
from .outline import Outline, Transfer

STEPS = 3
"""How far around a collective is looked."""

MOST = 60
"""Instructions on each side."""

LANDMARKS = 40
"""Collectives that both sides have, by which the place of one is found that only one side has."""

ALIKE = 0.6
"""The part of what is compared that has to agree for two instructions to be taken for one."""

UNREAD = frozenset(("metadata", "backend_config", "channel_id", "frontend_attributes", "use_global_device_ids"))
"""Attributes that a line is shown without."""

ACCIDENTAL = frozenset((*UNREAD, "calls", "to_apply", "body", "condition", "sharding", "replica_groups"))
"""Attributes that name, number or place, that say how the backend goes about it, or that are spelled in many ways."""

_LAYOUT = re.compile(r"\{[\d,]*(?::[^}]*)?\}|/\*.*?\*/")


@dataclass(frozen=True, slots=True)
class Facing:
    """An instruction on each side, or on one alone; `same` where they do the same with the same operands' types."""

    before: Instruction | None
    after: Instruction | None
    same: bool = False


def surroundings(before: Instruction, after: Instruction) -> tuple[Facing, ...]:
    """What stands around two collectives that are one, in the order of the text after, the rest where it stood."""
    ones, others = _near(before), _near(after)
    return tuple(_in_order(ones, others, _Matching([(before, after)], ones, others).found))


def around(found: Diff, change: Change) -> tuple[Facing, ...]:
    """What stands around a change in the texts of both sides.

    Around one that is on one side only the other side is found through the nearest collective that is the same.
    """
    before = _instruction(found.before, change.before)
    after = _instruction(found.after, change.after)
    if before is not None and after is not None:
        return surroundings(before, after)
    if before is not None:
        turned = _anchored(before, [(other, one) for one, other in _landmarks(found, before, 0)])
        return tuple(Facing(each.after, each.before, each.same) for each in turned)
    return () if after is None else _anchored(after, _landmarks(found, after, 1))


def _landmarks(found: Diff, near: Instruction, side: int) -> list[tuple[Instruction, Instruction]]:
    """Of the collectives that are the same, the instructions of those that stand nearest on one of the sides."""
    start = near.span.start
    placed = [pair for pair in found.unmistakable if pair[0].span is not None and pair[1].span is not None]
    placed.sort(key=lambda pair: abs((pair[side].span or near.span).start - start))
    both = [(_instruction(found.before, one), _instruction(found.after, other)) for one, other in placed[:LANDMARKS]]
    return [(one, other) for one, other in both if one is not None and other is not None]


def _anchored(alone: Instruction, known: Sequence[tuple[Instruction, Instruction]]) -> tuple[Facing, ...]:
    """What stands around an instruction, as what is after; before is what the other side has for it."""
    near = _near(alone)
    here = [(one, other) for one, other in known if other.computation is alone.computation]
    if not here:
        return tuple(Facing(None, each) for each in near)
    anchors = min(here, key=lambda pair: abs(pair[1].span.start - alone.span.start))
    ones, others = (_near(each, 4 * STEPS, 4 * MOST) for each in anchors)
    others = sorted({each.name: each for each in (*others, *near)}.values(), key=_start)
    shown = {each.name for each in (*near, anchors[1])}
    matched = _in_order(ones, others, _Matching(here, ones, others, alone.name).found)
    return tuple(each for each in matched if each.after is not None and each.after.name in shown)


def _start(instruction: Instruction) -> int:
    return instruction.span.start


def _instruction(side: Outline, transfer: Transfer | None) -> Instruction | None:
    """The instruction that a transfer stands for; None where the text is no HLO, or not there, as a golden's."""
    if side.text is None or transfer is None or transfer.span is None:
        return None
    module = read(side.text)
    return module.instruction_at(transfer.span.start) if isinstance(module, HloModule) else None


def line(instruction: Instruction) -> str:
    """An instruction without what only machines read."""
    attributes = "".join(f", {key}={value}" for key, value in instruction.attributes.items() if key not in UNREAD)
    inside = instruction.literal
    operands = ", ".join(instruction.operands) if inside is None else inside
    return f"{instruction.name} = {_type(instruction)} {instruction.opcode}({operands}){attributes}"


def _near(start: Instruction, steps: int = STEPS, most: int = MOST) -> list[Instruction]:
    """Operands of operands, users of users, and the operands of those that are a step away; in text order."""
    computation = start.computation
    found, edge = {start.name: start}, [start]
    for _ in range(steps):
        if len(found) >= most:
            break
        used = uses(computation, frozenset(each.name for each in edge))
        names = [name for each in edge for name in each.operands]
        reached = [
            *filter(None, map(computation.instruction, names)),
            *(user for each in edge for user in used[each.name]),
        ]
        edge = []
        for each in reached:
            if each.name not in found and len(found) < most:
                found[each.name] = each
                edge.append(each)
    return sorted(found.values(), key=_start)


class _Matching:
    """The pairs, found stage by stage."""

    def __init__(
        self,
        known: Iterable[tuple[Instruction, Instruction]],
        ones: Sequence[Instruction],
        others: Sequence[Instruction],
        alone: str | None = None,
    ) -> None:
        self.found: dict[str, str] = {}
        self._taken = {alone}
        self._ones, self._others = ({each.name: each for each in side} for side in (ones, others))
        self._users = [_users_of(side) for side in (ones, others)]
        for one, other in known:
            if self._ones.get(one.name) is one and self._others.get(other.name) is other:
                self._pair(one, other)
        self._by_cone()
        self._by_context()
        while self._most_alike():
            self._by_context()

    def _pair(self, one: Instruction, other: Instruction) -> bool:
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

    def _operands(self, name: str, facing: str) -> Iterator[tuple[Instruction, Instruction]]:
        sides = self._ones[name].operands, self._others[facing].operands
        if len(sides[0]) == len(sides[1]):
            for one, other in zip(*sides, strict=True):
                if one in self._ones and other in self._others:
                    yield self._ones[one], self._others[other]

    def _only_users(self, name: str, facing: str) -> Iterator[tuple[Instruction, Instruction]]:
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
        best: dict[tuple[str, str], list[float]] = {}
        for score, one, other in scores:
            for key in (("before", one.name), ("after", other.name)):
                best.setdefault(key, []).append(score)
        tops = {key: max(each) for key, each in best.items()}
        single = {key: each.count(tops[key]) == 1 for key, each in best.items()}
        chosen = [
            (one, other)
            for score, one, other in scores
            if score >= ALIKE
            and all(tops[key] == score and single[key] for key in (("before", one.name), ("after", other.name)))
        ]
        # Each is in one of them only, so none stands in another's way.
        for one, other in chosen:
            self._pair(one, other)
        return bool(chosen)

    def _likeness(self, one: Instruction, other: Instruction) -> float:
        """The part of type, attributes and neighbours that agree."""
        agreeing = [_type(one) == _type(other)]
        keys = (one.attributes.keys() | other.attributes.keys()) - ACCIDENTAL
        agreeing += [one.attributes.get(key) == other.attributes.get(key) for key in keys]
        agreeing += [
            self.found.get(first) == second for first, second in zip(one.operands, other.operands, strict=False)
        ]
        mine = {self.found.get(user.name) for user in self._users[0].get(one.name, ())}
        theirs = {user.name for user in self._users[1].get(other.name, ())}
        agreeing += [bool(mine & theirs)] if mine or theirs else []
        return sum(agreeing) / len(agreeing)


def _in_order(ones: Sequence[Instruction], others: Sequence[Instruction], found: dict[str, str]) -> Iterator[Facing]:
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


def _is_same(one: Instruction, other: Instruction, found: dict[str, str]) -> bool:
    """The same label, and operands that are matched or beyond what was looked at."""
    facing = [found.get(first, second) == second for first, second in zip(one.operands, other.operands, strict=False)]
    return _label(one) == _label(other) and len(one.operands) == len(other.operands) and all(facing)


def _cones(side: dict[str, Instruction]) -> dict[str, int]:
    """For each instruction the hash of what it does to what, as far as is looked; operands stand before their users."""
    cones: dict[str, int] = {}
    for name, each in side.items():
        cones[name] = hash((_label(each), *(cones.get(operand) for operand in each.operands)))
    return cones


def _users_of(side: Sequence[Instruction]) -> dict[str, list[Instruction]]:
    found: dict[str, list[Instruction]] = {}
    for each in side:
        for operand in dict.fromkeys(each.operands):
            found.setdefault(operand, []).append(each)
    return found


def _label(instruction: Instruction) -> tuple[object, ...]:
    """What it does, without names; the number of a parameter is accidental, the value of a constant is not."""
    attributes = tuple(sorted((k, v) for k, v in instruction.attributes.items() if k not in ACCIDENTAL))
    literal = instruction.literal if instruction.opcode == "constant" else None
    return instruction.opcode, _type(instruction), attributes, literal, _called(instruction), _groups(instruction)


def _groups(instruction: Instruction) -> object:
    """Who talks to whom, however it is spelled."""
    try:
        spelled = instruction.replica_groups
    except ParseError:
        return instruction.attributes.get("replica_groups")
    return None if spelled is None else spelled.devices(0)


def _called(instruction: Instruction) -> tuple[tuple[str, int], ...]:
    """The census of the computations that it calls: their names say nothing."""
    counted: Counter[str] = Counter()
    for computation in filter(None, map(instruction.computation.module.computation, instruction.called)):
        counted.update(each.opcode for each in computation.instructions)
    return tuple(sorted(counted.items()))


def _type(instruction: Instruction) -> str:
    """Without layouts."""
    return _LAYOUT.sub("", instruction.type_text)
