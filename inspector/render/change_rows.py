"""A diff as rows of tables, for all that print it: what is alike in one row, each cell a text; values in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...parsers.record import Record
from ..capture.model import OutputSummary, Validation
from ..report.changes import Change, ChangeKind, Diff, Metric, OutputChange
from ..units import grouped, known_sum, listed, plural
from .collective_rows import SHORT_PASS
from .diff_words import SIGNS, amount_text, axes_words, bytes_delta, differences, opcode_words, transfer_text
from .table import Piece
from .validation import MAX_OUTPUTS, compare_validations, validation_lines

MAX_ROWS = 60
"""Rows of each table that are printed."""

MAX_TYPES = 2
"""Types that a row spells out."""

MAX_OPCODES = 12
"""Kinds of operations whose numbers are shown."""


class ChangeRow(Record, frozen=True):
    """Collectives that changed alike, at one place; `wire` is for all of them in one run of the program."""

    kind: ChangeKind
    sign: str
    numbers: str
    what: str
    axes: str
    types: tuple[str, ...]
    wire: str
    direction: str
    place: str
    changes: tuple[Change, ...]


def change_rows(found: Diff) -> tuple[ChangeRow, ...]:
    """A row for changes that differ in their types only, those that weigh most first.

    What sends as much as before is a row wherever it stands.
    """
    alike: dict[tuple[str, ...], list[Change]] = {}
    for change in found.changes:
        row = change_row((change,))
        where = (row.direction, row.place) if change.wire_bytes != 0 else ()
        alike.setdefault((row.kind, row.what, row.axes, *where), []).append(change)
    rows = [(sum(abs(each.wire_bytes or 0) for each in those), change_row(those)) for those in alike.values()]
    return tuple(row for _, row in sorted(rows, key=lambda each: -each[0]))


def changes_one_by_one(found: Diff) -> tuple[ChangeRow, ...]:
    """A row for changes that read alike, in the order of the diff."""
    alike = grouped((replace(change_row((change,)), changes=()), change) for change in found.changes)
    return tuple(map(change_row, alike.values()))


def change_row(changes: Sequence[Change]) -> ChangeRow:
    """The row of changes that are alike."""
    first = changes[0]
    subject = first.before or first.after
    assert subject is not None
    words = f": {', '.join(differences(first))}" if first.befores and first.afters else ""
    before, after = (sum(each.numbers[side] for each in changes) for side in (0, 1))
    directions, places = (list(dict.fromkeys(each)) for each in zip(*map(_where, changes), strict=True))
    return ChangeRow(
        kind=first.kind,
        sign=SIGNS[first.kind],
        numbers=_numbers(before, after),
        what=subject.work.kind + words,
        axes=axes_words(subject.work),
        types=_types(changes),
        wire=bytes_delta(0, known_sum(each.wire_bytes for each in changes)),
        direction=directions[0] if len(directions) == 1 else "",
        place=places[0] if len(places) == 1 else f"{len(places)} places",
        changes=tuple(changes),
    )


def _where(change: Change) -> tuple[str, str]:
    """The pass and the place, as of after the change if they are known there: what was combined may have neither."""
    sides = [side for side in (change.after, change.before) if side is not None]
    directions = (SHORT_PASS[side.place.direction] for side in sides)
    return next(filter(None, directions), ""), next((side.where for side in sides if side.where), "")


def _numbers(before: int, after: int) -> str:
    """`2×` of what came, went or changed one for one; `24 → 1` of what was combined; empty for one."""
    if before and after and before != after:
        return f"{before} → {after}"
    return f"{max(before, after)}×" if max(before, after) > 1 else ""


def _types(changes: Sequence[Change]) -> tuple[str, ...]:
    sides = ([each.befores for each in changes], [each.afters for each in changes])
    words = [_several(dict.fromkeys(transfer_text(one) for each in side for one, _ in each)) for side in sides]
    return tuple(dict.fromkeys(filter(None, words)))


def _several(types: Iterable[str]) -> str:
    listed = list(types)
    shown = "; ".join(listed[:MAX_TYPES])
    return shown if len(listed) <= MAX_TYPES else f"{shown}; and {len(listed) - MAX_TYPES} more"


def amount_rows(found: Diff) -> list[tuple[str, str]]:
    """Memory, times, and the operations that changed most in number."""
    rows = [(f"{amount.name} memory", amount_text(amount)) for amount in found.sizes]
    rows += [(f"{amount.name} time", amount_text(amount, seconds=True)) for amount in _comparable(found.costs)]
    return rows + ([("operations", opcode_words(found.opcodes, MAX_OPCODES))] if found.opcodes else [])


def _comparable(costs: Sequence[Metric]) -> Iterable[Metric]:
    """For times that only one side has, such as those of a target with known figures, only the total."""
    return (each for each in costs if each.name == "estimated" or None not in (each.before, each.after))


MAX_VALUES = 40
"""Characters of an output's elements; of more, the norm is shown."""


def value_rows(found: Diff) -> Iterator[tuple[str, str]]:
    """The rows of compared outputs: the equal ones in one, then each that differs; none unless both sides were run."""
    values = found.values
    if values is None:
        return
    if values.same_inputs is False:
        yield "inputs", "differ, so that the outputs of both runs cannot be compared"
        return
    if values.differs and values.same_inputs is None:
        yield "inputs", "not known to be the same in both runs"
    if equal := values.equal + values.close:
        yield plural(equal, "output"), _equal(values.equal, values.close)
    if values.unknown:
        yield plural(values.unknown, "output"), "not compared: not described closely enough, or too large"
    for each in values.differs:
        yield each.after.path, differing_text(each)


def _equal(equal: int, close: int) -> str:
    if not close:
        return "the same in every bit"
    return "equal within rounding" + (f", {equal} of them in every bit" if equal else "")


def differing_text(each: OutputChange) -> str:
    """`norm 1.25 → 1.5, 2,000× the rounding tolerance`."""
    return f"{_shown(each.before, each.after)}, {off_by(each)}"


def off_by(each: OutputChange) -> str:
    """`1,448× the rounding tolerance`; of integers and of NaNs, their number."""
    if math.isfinite(each.distance):
        times = f"{each.distance:,.0f}" if 100 <= each.distance < 1e6 else f"{each.distance:.3g}"
        return f"{times}× the rounding tolerance"
    counts = [one.non_finite or 0 for one in (each.before, each.after)]
    return f"{counts[0]} → {counts[1]} elements not finite" if counts[0] != counts[1] else "not by rounding"


def _shown(before: OutputSummary, after: OutputSummary) -> str:
    """The elements where they are few, else the norms."""
    texts = [" ".join((each.values or "").split()) for each in (before, after)]
    if all(texts) and texts[0] != texts[1] and max(map(len, texts)) <= MAX_VALUES:
        return f"{texts[0]} → {texts[1]}"
    norms = [each.projections[0] for each in (before, after) if each.projections is not None]
    return f"norm {norms[0]:.7g} → {norms[1]:.7g}" if len(norms) == 2 else "other values"


def pair_lines(before: Validation | None, after: Validation | None) -> Iterator[Piece]:
    """Each side of a diff by itself, and whether both compute the same."""
    for side, found in (("A", before), ("B", after)):
        if found is not None:
            for piece in validation_lines(found):
                yield Piece(f"{side}: {piece.text}" if not piece.text.startswith(" ") else piece.text, piece.role)
    pair = compare_validations(before, after)
    if pair.reason:
        yield Piece(f"A and B not compared by values: {pair.reason}", "warning")
    elif pair.differing:
        yield Piece(
            f"A and B compute something else, off by {pair.error:.1g}: {listed(pair.differing, MAX_OUTPUTS)}", "error"
        )
    else:
        yield Piece(f"A and B compute the same: {plural(pair.outputs, 'output')}, {pair.error:.0e}", "good")
