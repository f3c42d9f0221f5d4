"""What changed between two lowerings of a program: the Diff, and how it comes from two Reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from ..report import Report
from . import concerns, matching
from .concerns import Concern
from .inside import InsideChange, inside_changes
from .outline import Border, Outline, Transfer, Work, common_stages, outline
from .pairing import Pair, pair_up

ChangeKind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """`count` collectives that came, went, or do something else; `what` names the fields of their work that differ."""

    kind: ChangeKind
    count: int
    before: Transfer | None
    after: Transfer | None
    what: tuple[str, ...] = ()

    @property
    def wire_bytes(self) -> int | None:
        """Bytes that a device sends more in one run of the program, for all of them; None where that is not known."""
        sides = [0 if side is None else side.work.total_wire for side in (self.before, self.after)]
        return None if sides[0] is None or sides[1] is None else (sides[1] - sides[0]) * self.count


@dataclass(frozen=True, slots=True)
class BorderChange:
    """An argument or output that is sharded otherwise, has another type, came or went."""

    before: Border | None
    after: Border | None


@dataclass(frozen=True, slots=True)
class ConcernChange:
    """`count` findings that are `added` or `removed`."""

    kind: Literal["added", "removed"]
    concern: Concern
    count: int


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that differs; None on the side that does not have it."""

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Diff:
    """All that differs; `changes` are those of communication, the largest first.

    `same` is how many collectives are the same on both sides, `unmistakable` are those of them that are there once.
    """

    before: Outline
    after: Outline
    changes: tuple[Change, ...]
    same: int
    unmistakable: tuple[tuple[Transfer, Transfer], ...]
    borders: tuple[BorderChange, ...]
    insides: tuple[InsideChange, ...]
    concerns: tuple[ConcernChange, ...]
    sizes: tuple[Amount, ...]
    costs: tuple[Amount, ...]
    opcodes: tuple[Amount, ...]

    @property
    def communication_differs(self) -> bool:
        """Whether any collective came, went or changed."""
        return bool(self.changes)


def diff(before: Report, after: Report) -> Diff:
    """Compare two reports at the last stage that both have.

    Raises:
        CaptureError: there is no stage that both have.
    """
    stages = common_stages(before.capture, after.capture)
    return compare_outlines(outline(before, stages[0]), outline(after, stages[1]))


def compare_outlines(before: Outline, after: Outline) -> Diff:
    """Compare two outlines of the same stage."""
    pairs = pair_up(before.transfers, after.transfers, matching.RULES)
    changes = [change for pair in pairs if (change := _change(pair)) is not None]
    return Diff(
        before=before,
        after=after,
        changes=tuple(sorted(changes, key=lambda change: -abs(change.wire_bytes or 0))),
        same=sum(pair.count for pair in pairs if _change(pair) is None),
        unmistakable=tuple(_unmistakable(pairs, before, after)),
        borders=tuple(_border_changes(before.borders, after.borders)),
        insides=inside_changes(before.insides, after.insides),
        concerns=tuple(_concern_changes(before, after)),
        sizes=_amounts(before.sizes, after.sizes),
        costs=tuple(amount for amount in _amounts(before.costs, after.costs) if _is_worth_telling(amount)),
        opcodes=_amounts(before.opcodes, after.opcodes, missing=0),
    )


def _unmistakable(
    pairs: Sequence[Pair[Transfer]], before: Outline, after: Outline
) -> Iterator[tuple[Transfer, Transfer]]:
    once = [{transfer for transfer, count in side.transfers if count == 1} for side in (before, after)]
    for pair in pairs:
        match pair:
            case Pair(Transfer() as one, Transfer() as other, _) if one in once[0] and other in once[1]:
                if _change(pair) is None:
                    yield one, other


def _concern_changes(before: Outline, after: Outline) -> Iterator[ConcernChange]:
    for pair in pair_up(before.concerns, after.concerns, concerns.RULES):
        match pair:
            case Pair(None, Concern() as concern, count):
                yield ConcernChange("added", concern, count)
            case Pair(Concern() as concern, None, count):
                yield ConcernChange("removed", concern, count)


def _change(pair: Pair[Transfer]) -> Change | None:
    match pair:
        case Pair(None, after, count):
            return Change("added", count, None, after)
        case Pair(before, None, count):
            return Change("removed", count, before, None)
        case Pair(Transfer(was), Transfer(became), _) if was == became:
            return None
        case Pair(Transfer() as one, Transfer() as other, count):
            return Change("changed", count, one, other, _differing(one.work, other.work))
    raise AssertionError("unreachable")


def _differing(one: Work, other: Work) -> tuple[str, ...]:
    return tuple(f.name for f in fields(Work) if getattr(one, f.name) != getattr(other, f.name))


def _border_changes(before: Sequence[Border], after: Sequence[Border]) -> list[BorderChange]:
    """By name; what has no namesake, by its place among the arguments or outputs, since names may have changed."""
    found = []
    for role in ("argument", "output"):
        ones, others = ([each for each in side if each.role == role] for side in (before, after))
        names = {each.name for each in ones} & {each.name for each in others}
        if len(ones) == len(others):
            pairs: list[tuple[Border | None, Border | None]] = list(zip(ones, others, strict=True))
        else:
            known = {each.name: each for each in ones}
            pairs = [(known.get(each.name), each) for each in others]
            pairs += [(each, None) for each in ones if each.name not in names]
        found += [BorderChange(one, other) for one, other in pairs if _layout(one) != _layout(other)]
    return found


def _layout(border: Border | None) -> tuple[str, str | None] | None:
    return None if border is None else (border.type, border.spec)


def _is_worth_telling(amount: Amount) -> bool:
    """Estimates that differ by less than one in a thousand are the same."""
    one, other = amount.before, amount.after
    return one is None or other is None or abs(one - other) >= 1e-3 * max(abs(one), abs(other))


def _amounts(
    before: Mapping[str, float], after: Mapping[str, float], missing: float | None = None
) -> tuple[Amount, ...]:
    names = dict.fromkeys((*before, *after))
    found = (Amount(name, before.get(name, missing), after.get(name, missing)) for name in names)
    return tuple(amount for amount in found if amount.before != amount.after)
