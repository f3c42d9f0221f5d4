"""Pairs of collectives in two lowerings whose compilers combine and split them.

A compiler may make one collective of 24, or 24 of one, and concatenate what they carry. So what is compared here are
the operands: each, with what is done to it, is found on the other side by rules, the strictest first. Collectives whose
operands are each other's belong together, however many there are on each side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from ...parsers.record import Record
from ..catalog.spellings import BECOMES, KIND_OF
from ..report.changes import Counted, Operand, Transfer
from ..units import grouped
from .pairing import Rule, pair_up

SHARED = 0.5
"""The part of the elements that two groups must have in common; less may be a coincidence, as of scalars."""


class Regrouping(Record, frozen=True):
    """`count` times these collectives of one side for those of the other; `exact` where they do nothing else."""

    befores: Counted
    afters: Counted
    count: int
    exact: bool


class _Piece(Record, frozen=True):
    """The operand `number` of a collective; `owner` is the number of that among those of its side."""

    owner: int
    number: int
    transfer: Transfer
    operand: Operand

    @property
    def size(self) -> int:
        return max(self.operand.elements_in, self.operand.elements_out)


class _Facing(Record, frozen=True):
    """Pieces of both sides that are the same ones: one each, or as many as were concatenated."""

    before: Sequence[_Piece]
    after: Sequence[_Piece]
    exact: bool


def regroup(before: Counted, after: Counted) -> tuple[tuple[Regrouping, ...], Counted, Counted]:
    """Return the groups, and the rest of both sides: exact ones first, then those that changed as well."""
    found: Counter[tuple[Counted, Counted, bool]] = Counter()
    for rules, loosely in ((SAME, False), ((*SAME, *CHANGED), True)):
        ones, others = ([each for each, count in side for _ in range(count)] for side in (before, after))
        gone, arrived = set[int](), set[int]()
        for here, there, exact in _groups(ones, others, rules):
            if loosely or exact:
                found[_counted(ones[n] for n in here), _counted(others[n] for n in there), exact] += 1
                gone.update(here)
                arrived.update(there)
        before = _counted(each for number, each in enumerate(ones) if number not in gone)
        after = _counted(each for number, each in enumerate(others) if number not in arrived)
    return tuple(Regrouping(one, other, count, exact) for (one, other, exact), count in found.items()), before, after


def _counted(transfers: Iterable[Transfer]) -> Counted:
    return tuple(Counter(transfers).items())


def _groups(
    before: Sequence[Transfer], after: Sequence[Transfer], rules: Sequence[Rule[_Piece]]
) -> Iterator[tuple[list[int], list[int], bool]]:
    """The numbers of those that belong together, on each side, and whether nothing else became of them."""
    sides = [list(map(_pieces, range(len(side)), side)) for side in (before, after)]
    # Of two that may carry the same operand, that which carries more: it is the one that was combined.
    every = [[piece for own in sorted(side, key=_size, reverse=True) for piece in own] for side in sides]
    for facings in _connected(_facings(every[0], every[1], rules)):
        faced = [[p for f in facings for p in f.before], [p for f in facings for p in f.after]]
        owners = [sorted({piece.owner for piece in side}) for side in faced]
        carried = [[piece for n in those for piece in side[n]] for side, those in zip(sides, owners, strict=True)]
        if _size(faced[0]) >= SHARED * max(map(_size, carried)):
            exact = all(facing.exact for facing in facings) and list(map(len, faced)) == list(map(len, carried))
            yield owners[0], owners[1], exact


def _pieces(owner: int, transfer: Transfer) -> list[_Piece]:
    return [_Piece(owner, number, transfer, operand=operand) for number, operand in enumerate(transfer.operands)]


def _facings(before: Sequence[_Piece], after: Sequence[_Piece], rules: Sequence[Rule[_Piece]]) -> list[_Facing]:
    found: list[_Facing] = []
    left: dict[Hashable, tuple[list[_Piece], list[_Piece]]] = {}
    for pair in pair_up([(piece, 1) for piece in before], [(piece, 1) for piece in after], rules):
        one, other = pair.before, pair.after
        if one is not None and other is not None:
            found.append(_Facing((one,), (other,), one.operand == other.operand and _does(one) == _does(other)))
        for number, alone in ((0, one if other is None else None), (1, other if one is None else None)):
            if alone is not None:
                left.setdefault((_runs(alone), alone.operand.dtype), ([], []))[number].append(alone)
    # What is left where the same is done to as much of it: compilers lay operands one after another.
    for ones, others in left.values():
        if ones and others and _totals(ones) == _totals(others):
            found.append(_Facing(ones, others, len({_does(piece) for piece in (*ones, *others)}) == 1))
    return found


def _connected(facings: Sequence[_Facing]) -> Iterable[list[_Facing]]:
    """The facings that have to do with each other, by the collectives that their pieces are of."""
    above: dict[tuple[int, int], tuple[int, int]] = {}

    def top(node: tuple[int, int]) -> tuple[int, int]:
        while (higher := above.setdefault(node, node)) != node:
            above[node] = node = above.setdefault(higher, higher)
        return node

    nodes = [[*((0, p.owner) for p in facing.before), *((1, p.owner) for p in facing.after)] for facing in facings]
    for first, *others in nodes:
        for other in others:
            above[top(other)] = top(first)
    return grouped((top(first), facing) for facing, (first, *_) in zip(facings, nodes, strict=True)).values()


def _totals(pieces: Sequence[_Piece]) -> tuple[int, int]:
    return sum(p.operand.elements_in for p in pieces), sum(p.operand.elements_out for p in pieces)


def _size(pieces: Sequence[_Piece]) -> int:
    return sum(piece.size for piece in pieces)


def _runs(piece: _Piece) -> Hashable:
    work = piece.transfer.work
    return work.kind, work.reduction, work.axes, work.executions, work.partners


def _does(piece: _Piece) -> Hashable:
    """All of its collective's work but how much it is."""
    return _runs(piece), piece.transfer.work.is_async, piece.transfer.work.fused_form


def _same(piece: _Piece) -> Hashable:
    return _runs(piece), piece.operand


def _other_dtype(piece: _Piece) -> Hashable:
    return _runs(piece), piece.operand.elements_in, piece.operand.elements_out


def _what_is_reduced(piece: _Piece) -> Hashable | None:
    """Return the operands of a reduction, whether all devices get the full result or a part each."""
    work = piece.transfer.work
    if not KIND_OF[work.kind].reduces:
        return None
    return work.reduction, work.axes, work.partners, work.executions, piece.operand.dtype, piece.operand.elements_in


def _what_is_gathered(piece: _Piece) -> Hashable | None:
    """Return the result, whether it was gathered, or summed from parts that are zero elsewhere."""
    work = piece.transfer.work
    if work.kind != "all-gather" and ("all-gather", work.kind) not in BECOMES:
        return None
    return work.axes, work.partners, work.executions, piece.operand.dtype, piece.operand.elements_out


def _at_line(rule: Rule[_Piece]) -> Rule[_Piece]:
    return _with(rule, lambda piece: (piece.transfer.place.frames[0], piece.transfer.place.direction))


def _in_pass(rule: Rule[_Piece]) -> Rule[_Piece]:
    return _with(rule, lambda piece: piece.transfer.place.direction)


def _with(rule: Rule[_Piece], detail: Callable[[_Piece], Hashable]) -> Rule[_Piece]:
    return lambda piece: None if (key := rule(piece)) is None else (key, detail(piece))


# Combined collectives are of many lines and passes, so that compilers give them one of these, or none.
SAME = (_at_line(_same), _in_pass(_same), _same)

CHANGED = (
    _at_line(_other_dtype),
    _in_pass(_other_dtype),
    _other_dtype,
    _at_line(_what_is_reduced),
    _at_line(_what_is_gathered),
    _in_pass(_what_is_reduced),
    _in_pass(_what_is_gathered),
    _what_is_reduced,
    _what_is_gathered,
)
