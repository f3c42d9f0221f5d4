"""A diff in words: the headline, and a line for each change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ..units import format_bytes, format_seconds, plural
from .diff import Amount, BorderChange, Change, ConcernChange, Diff
from .inside import InsideChange
from .outline import Border, Transfer, Work

MOST = 3
"""Phrases of the headline."""

SIGNS = {"added": "+", "removed": "−", "changed": "~"}


def headline(found: Diff) -> str:
    """`no change in communication`, or `+2 all-gathers over tp in a loop: +1.2 GiB per device and run`; then the rest.

    The rest is what one would not want to find further down: shardings that differ where communication does not, memory
    that is no longer reused, findings.
    """
    return "; ".join((_communication(found), *_besides(found)))


def _communication(found: Diff) -> str:
    if not found.changes:
        same = plural(found.same, "collective")
        return f"no change in communication ({same}, {format_bytes(found.after.total_wire)} per device and run)"
    counted: dict[tuple[str, str, str], int] = {}
    for change in found.changes:
        phrase = _phrase(change)
        counted[phrase] = counted.get(phrase, 0) + change.count
    phrases = [
        f"{sign}{count} {noun if count == 1 else f'{noun}s'}{rest}" for (sign, noun, rest), count in counted.items()
    ]
    if len(phrases) > MOST and (census := _census(found)):
        phrases = census
    others = len(phrases) - MOST
    more = phrases[-1] if others == 1 else plural(others, "other change")
    listed = ", ".join(phrases[:MOST]) + (f", and {more}" if others > 0 else "")
    before, after = found.before.total_wire, found.after.total_wire
    return listed if before == after is not None else f"{listed}: {bytes_delta(before, after)} per device and run"


def _census(found: Diff) -> list[str]:
    """How many there are of each kind over the same axes, where that differs, what weighs most first; then the rest.

    For sides that have little in common, as those of two targets.
    """
    tallies: dict[tuple[str, str], list[int]] = {}
    for place, side in enumerate((found.before, found.after)):
        for transfer, count in side.transfers:
            tally = tallies.setdefault((transfer.work.kind, axes_words(transfer.work)), [0, 0, 0])
            tally[place] += count
            tally[2] += (1, -1)[place] * count * (transfer.work.total_wire or 0)
    differing = sorted((abs(tally[2]), key, tally) for key, tally in tallies.items() if tally[0] != tally[1])
    told = [f"{kind}s over {axes} {tally[0]} → {tally[1]}" for _, (kind, axes), tally in reversed(differing)]
    changed = sum(change.count for change in found.changes if change.kind == "changed")
    return [*told[:MOST], *([f"{changed} changed"] if told and changed else [])]


def _besides(found: Diff) -> Iterator[str]:
    if found.borders and not found.changes:
        yield f"{plural(len(found.borders), 'sharding')} of arguments and outputs changed"
    for amount in found.sizes:
        if amount.name == "aliased" and (amount.after or 0) < (amount.before or 0):
            yield f"donation lost: {format_bytes(round(amount.after or 0))} reused instead of {_size(amount.before)}"
    for sign, kind in (("new", "added"), ("gone", "removed")):
        rules = Counter[str]()
        for change in found.concerns:
            if change.kind == kind:
                rules[f"{change.concern.rule} {change.concern.slug}"] += change.count
        if rules:
            listed = ", ".join(rule if count == 1 else f"{count}× {rule}" for rule, count in rules.items())
            yield f"{sign}: {listed}"


def _phrase(change: Change) -> tuple[str, str, str]:
    """The sign, the noun to be counted, and what follows it."""
    before, after = change.before, change.after
    only = after or before
    assert only is not None
    if before is None or after is None:
        loop = " in a loop" if only.in_loop else ""
        return SIGNS[change.kind], only.work.kind, f" over {axes_words(only.work)}{loop}"
    return "", before.work.kind, f" over {axes_words(before.work)} {'; '.join(differences(change))}"


def differences(change: Change) -> list[str]:
    """What is different about a collective that is on both sides, as `runs 1 → 4 times`."""
    if change.before is None or change.after is None:
        return []
    one, other = change.before.work, change.after.work
    told = []
    if one.kind != other.kind:
        told.append(f"became {other.kind}")
    if one.reduction != other.reduction and one.kind == other.kind:
        told.append(f"reduces by {other.reduction or '?'} instead of {one.reduction or '?'}")
    if one.axes != other.axes:
        told.append(f"now over {axes_words(other)}")
    if one.dtypes != other.dtypes:
        told.append(f"{', '.join(one.dtypes)} → {', '.join(other.dtypes)}")
    if one.kind == other.kind and (one.bytes_in, one.bytes_out) != (other.bytes_in, other.bytes_out):
        told.append(f"{format_bytes(_largest(one))} → {format_bytes(_largest(other))} each")
    if one.executions != other.executions:
        moved = {(False, True): "moved into a loop, ", (True, False): "moved out of a loop, "}
        where = moved.get((change.before.in_loop, change.after.in_loop), "")
        told.append(f"{where}runs {_times(one)} → {_times(other)} times")
    elif change.before.in_loop != change.after.in_loop:
        told.append("moved into a loop" if change.after.in_loop else "moved out of a loop")
    if one.is_async != other.is_async:
        told.append("now async" if other.is_async else "no longer async")
    # Who talks to whom follows from the axes, and the bytes on the wire from all of these.
    if one.partners != other.partners and one.axes == other.axes:
        told.append("between other devices")
    if one.fused_form != other.fused_form and one.kind == other.kind:
        told.append(f"written as {other.fused_form or other.kind} instead of {one.fused_form or one.kind}")
    return told or ["otherwise"]


def axes_words(work: Work) -> str:
    """`x, y`; groups that no axes form are said to be so."""
    if work.axes is None:
        return "groups of no axes"
    return ", ".join(work.axes) or "one device each"


def bytes_delta(before: float | None, after: float | None) -> str:
    """`+1.2 GiB`; `±0 B` for none, `? B` where one is not known."""
    if before is None or after is None:
        return "? B"
    return _signed(round(after - before), format_bytes)


def amount_text(amount: Amount, *, seconds: bool = False) -> str:
    """`1 MiB → 2 MiB (+100 %)`."""
    sides = (amount.before, amount.after)
    one, other = (
        "none" if side is None else format_seconds(side) if seconds else format_bytes(round(side)) for side in sides
    )
    if amount.before and amount.after is not None:
        return f"{one} → {other} ({(amount.after / amount.before - 1) * 100:+.3g} %)"
    return f"{one} → {other}"


def border_text(change: BorderChange) -> str:
    """`f32[8,4] P('x') → f32[8,4] P(None)`."""
    one, other = change.before, change.after
    if one is None or other is None:
        present = other or one
        assert present is not None
        return f"{'new' if one is None else 'gone'}: {_layout(present)}"
    if one.type == other.type:
        return f"{one.type} {one.spec or '?'} → {other.spec or '?'}"
    return f"{_layout(one)} → {_layout(other)}"


def border_name(change: BorderChange) -> str:
    """`argument params['w']`, as it is named after the change."""
    present = change.after or change.before
    return "" if present is None else f"{present.role} {present.name}"


def inside_text(change: InsideChange) -> tuple[str, str]:
    """What it is and where, and what became of it: `dot_general, line 3 f`, `2× P('x') → P(None)`."""
    one, other = change.before, change.after
    present = other or one
    assert present is not None
    what = present.name if present.role == "value" or present.name == present.role else f"{present.role} {present.name}"
    times = f"{change.count}× " if change.count > 1 else ""
    if one is None or other is None:
        return f"{what}, {present.where}".rstrip(", "), f"{'new' if one is None else 'gone'}: {present.spec or '?'}"
    return f"{what}, {present.where}".rstrip(", "), f"{times}{one.type} {one.spec or '?'} → {other.spec or '?'}"


def concern_text(change: ConcernChange) -> tuple[str, str]:
    """Which finding, new or gone, and what it says: `new: SS01 missing-reduce-scatter, line 3 f`, `…`."""
    concern = change.concern
    times = f"{change.count}× " if change.count > 1 else ""
    kind = "new" if change.kind == "added" else "gone"
    return f"{kind}: {times}{concern.rule} {concern.slug}, {concern.where}".rstrip(", "), concern.message


def opcode_words(amounts: Sequence[Amount], most: int) -> str:
    """`fusion +3, copy −1`, the largest first, and how many more there are."""
    ordered = sorted(amounts, key=lambda amount: -abs(_count_delta(amount)))
    listed = ", ".join(f"{amount.name} {_signed(_count_delta(amount), str)}" for amount in ordered[:most])
    return listed + (f", and {len(ordered) - most} more" if len(ordered) > most else "")


def transfer_text(transfer: Transfer) -> str:
    """`f32[8] → f32[32]` and how often."""
    runs = _times(transfer.work)
    return transfer.types + ("" if runs == "1" else f" × {runs}")


def _count_delta(amount: Amount) -> int:
    return round((amount.after or 0) - (amount.before or 0))


def _signed(delta: int, text: Callable[[int], str]) -> str:
    return f"{'+' if delta > 0 else '−' if delta < 0 else '±'}{text(abs(delta))}"


def _size(size: float | None) -> str:
    return "none" if size is None else format_bytes(round(size))


def _largest(work: Work) -> int | None:
    known = [size for size in (work.bytes_in, work.bytes_out) if size is not None]
    return max(known, default=None)


def _times(work: Work) -> str:
    return "?" if work.executions is None else str(work.executions)


def _layout(border: Border) -> str:
    return f"{border.type} {border.spec or '?'}"
