"""A diff in words: a line for each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import join_axes
from ..report.changes import (
    BoundarySharding,
    Change,
    CollectiveSignature,
    Counted,
    FindingKey,
    IntermediateSharding,
    Metric,
    Pair,
    Transfer,
)
from ..units import format_bytes, format_seconds, plural

MULTIPLE = 10
"""Growth from which a multiple is shown instead of a percentage."""

SIGNS = {"added": "+", "removed": "−", "changed": "~", "regrouped": "="}


def differences(change: Change) -> list[str]:
    """Return the differences of paired collectives, such as `runs 1 → 4 times` or `combined into 1`."""
    if not change.befores or not change.afters:
        return []
    became = became_of(change).text(kinds(change.afters))
    return [*filter(None, [became]), *otherwise(change)] or ["otherwise"]


class Became(Record, frozen=True):
    """That collectives are of another kind, or another number of them, which is told if there are `several`."""

    verb: Literal["", "became", "combined into", "split into", "regrouped into"] = ""
    several: bool = False

    def text(self, after: Counter[str]) -> str:
        """With the kinds that they became, and how many of each."""
        if self.verb != "became":
            return f"{self.verb} {after.total()}" if self.verb else ""
        return "became " + " and ".join(plural(n, kind) if self.several else kind for kind, n in after.items())


def became_of(change: Change) -> Became:
    """Return what replaced kinds and numbers."""
    ones, others = map(kinds, (change.befores, change.afters))
    several = max(ones.total(), others.total()) > 1
    if ones.keys() != others.keys():
        return Became("became", several)
    if ones.total() == others.total():
        return Became("regrouped into", several) if several else Became()
    return Became("combined into" if others.total() < ones.total() else "split into", several)


def kinds(side: Counted, times: int = 1) -> Counter[str]:
    """Return the number of each kind, multiplied."""
    found = Counter[str]()
    for transfer, count in side:
        found[transfer.work.kind] += count * times
    return found


def otherwise(change: Change) -> list[str]:
    """Return the differences other than kinds and counts."""
    assert change.before is not None
    assert change.after is not None
    one, other = change.before.work, change.after.work
    phrases = []
    if one.reduction != other.reduction and one.kind == other.kind:
        phrases.append(f"reduces by {other.reduction or '?'} instead of {one.reduction or '?'}")
    if one.axes != other.axes:
        phrases.append(f"now over {axes_words(other)}")
    if "dtypes" in change.what:
        phrases.append(" → ".join(map(_dtypes, (change.befores, change.afters))))
    if "kind" not in change.what and (sizes := _sizes(change)):
        phrases.append(sizes)
    if one.executions != other.executions:
        moved = {(False, True): "moved into a loop, ", (True, False): "moved out of a loop, "}
        where = moved.get((change.before.in_loop, change.after.in_loop), "")
        phrases.append(f"{where}runs {_times(one)} → {_times(other)} times")
    elif change.before.in_loop != change.after.in_loop:
        phrases.append("moved into a loop" if change.after.in_loop else "moved out of a loop")
    if one.is_async != other.is_async:
        phrases.append("now async" if other.is_async else "no longer async")
    # Who talks to whom follows from the axes, and the bytes on the wire from all of these.
    if one.partners != other.partners and one.axes == other.axes:
        phrases.append("between different devices")
    if one.fused_form != other.fused_form and one.kind == other.kind:
        phrases.append(f"written as {other.fused_form or other.kind} instead of {one.fused_form or one.kind}")
    return phrases


def _dtypes(side: Counted) -> str:
    return ", ".join(sorted({dtype for each, _ in side for dtype in each.work.dtypes}))


def _sizes(change: Change) -> str:
    """`1 KiB → 2 KiB each`; empty where the same operands are carried, in whatever dtype."""
    ones, others = map(_carried, (change.befores, change.afters))
    if ones is not None and ones == others:
        return ""
    one, other = (
        sum((_largest(each.work) or 0) * count for each, count in side) for side in (change.befores, change.afters)
    )
    each = "each" if change.numbers == (change.count, change.count) else "in all"
    return f"{format_bytes(one)} → {format_bytes(other)} {each}" if one != other else ""


def _carried(side: Counted) -> tuple[int, int] | None:
    """The elements that go in and come out; None where they are not known."""
    if not all(each.operands for each, _ in side):
        return None
    return (
        sum(operand.elements_in * count for each, count in side for operand in each.operands),
        sum(operand.elements_out * count for each, count in side for operand in each.operands),
    )


def axes_words(work: CollectiveSignature) -> str:
    """`x, y`; groups that no axes form are said to be so."""
    if work.axes is None:
        return "groups of no axes"
    return join_axes(work.axes) or "one device each"


def bytes_delta(before: float | None, after: float | None) -> str:
    """`+1.2 GiB`; `±0 B` for none, `? B` where one is not known."""
    if before is None or after is None:
        return "? B"
    return _signed(round(after - before), format_bytes)


def amount_text(amount: Metric, *, seconds: bool = False) -> str:
    """`1 MiB → 2 MiB (+100 %)`."""
    sides = (amount.before, amount.after)
    one, other = (
        "not known" if side is None else format_seconds(side) if seconds else format_bytes(round(side))
        for side in sides
    )
    if amount.before and amount.after is not None:
        ratio = amount.after / amount.before
        return f"{one} → {other} ({f'{ratio:.3g}×' if ratio >= MULTIPLE else f'{(ratio - 1) * 100:+.3g} %'})"
    return f"{one} → {other}"


def border_text(change: Pair[BoundarySharding]) -> str:
    """`f32[8,4] P('x') → f32[8,4] P(None)`."""
    one, other = change.before, change.after
    if one is None or other is None:
        return f"{_sign(change)}: {_layout(change.present)}"
    if one.type == other.type:
        return f"{one.type} {one.spec or '?'} → {other.spec or '?'}"
    return f"{_layout(one)} → {_layout(other)}"


def border_name(change: Pair[BoundarySharding]) -> str:
    """`argument params['w']`, as it is named after the change."""
    return f"{change.present.role} {change.present.name}"


def inside_text(change: Pair[IntermediateSharding]) -> tuple[str, str]:
    """The value and its place, and what changed: `dot_general, line 3 f`, `2× P('x') → P(None)`."""
    one, other, present = change.before, change.after, change.present
    what = present.name if present.role == "value" or present.name == present.role else f"{present.role} {present.name}"
    became = f"{_sign(change)}: {present.spec or '?'}"
    if one is not None and other is not None:
        became = f"{_repeated(change)}{one.type} {one.spec or '?'} → {other.spec or '?'}"
    return f"{what}, {present.where}".rstrip(", "), became


def finding_text(change: Pair[FindingKey]) -> tuple[str, str]:
    """A finding that is new or gone, and its message: `new: SS01 missing-reduce-scatter, line 3 f`, `…`."""
    found, where = change.present.finding, change.present.where
    return f"{_sign(change)}: {_repeated(change)}{found.rule} {found.slug}, {where}".rstrip(", "), found.message


def _sign(change: Pair[Any]) -> str:
    return "new" if change.before is None else "gone"


def _repeated(change: Pair[Any]) -> str:
    return f"{change.count}× " if change.count > 1 else ""


def opcode_words(amounts: Sequence[Metric], most: int) -> str:
    """`fusion +3, copy −1`, the largest first, and how many more there are."""
    ordered = sorted(amounts, key=lambda amount: -abs(_count_delta(amount)))
    listed = ", ".join(f"{amount.name} {_signed(_count_delta(amount), str)}" for amount in ordered[:most])
    return listed + (f", and {len(ordered) - most} more" if len(ordered) > most else "")


def transfer_text(transfer: Transfer) -> str:
    """`f32[8] → f32[32]` and how often."""
    runs = _times(transfer.work)
    return transfer.types + ("" if runs == "1" else f" × {runs}")


def _count_delta(amount: Metric) -> int:
    return round((amount.after or 0) - (amount.before or 0))


def _signed(delta: int, text: Callable[[int], str]) -> str:
    return f"{'+' if delta > 0 else '−' if delta < 0 else '±'}{text(abs(delta))}"


def size_text(size: float | None) -> str:
    """`1.2 GiB`; `none` on a side that has no such size."""
    return "none" if size is None else format_bytes(round(size))


def _largest(work: CollectiveSignature) -> int | None:
    known = [size for size in (work.bytes_in, work.bytes_out) if size is not None]
    return max(known, default=None)


def _times(work: CollectiveSignature) -> str:
    return "?" if work.executions is None else str(work.executions)


def _layout(border: BoundarySharding) -> str:
    return f"{border.type} {border.spec or '?'}"
