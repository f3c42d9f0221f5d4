"""Budgets: what a function may communicate, take and cost at most, in words.

all-gather over tp: none        all-reduce: 4        wire bytes <= 2 GB
collectives <= 12               peak memory <= 90 %  time <= 1.5 ms
no implicit communication
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import get_args

from ..capture.model import CaptureError
from ..report import REQUESTED, Kind, PeakMemory
from ..report.changes import Counted, Fingerprint, Transfer
from ..report.verdict import Broken, Budget
from ..units import format_bytes, format_seconds, plural

SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}

IMPLICIT = "no implicit communication"

EXAMPLES = (
    "'all-gather over tp: none', 'all-reduce: 4', 'collectives <= 12', 'wire bytes <= 2 GB', 'peak memory <= 90 %',"
    f" 'time <= 1.5 ms', '{IMPLICIT}'"
)

_NUMBER = r"(?P<number>\d{1,15}(?:\.\d{1,6})?)"
_COUNT = re.compile(r"(?P<kind>[a-z-]+?)s?(?: over (?P<axes>[^:]+?))?\s*(?::|<=)\s*(?P<most>none|\d{1,9})")
_BYTES = re.compile(rf"(?P<what>wire bytes|peak memory)\s*<=\s*{_NUMBER}\s*(?P<unit>[kmgt]i?|)b?", re.IGNORECASE)
_SHARE = re.compile(rf"peak memory\s*<=\s*{_NUMBER}\s*%", re.IGNORECASE)
_TIME = re.compile(rf"time\s*<=\s*{_NUMBER}\s*(?P<unit>s|ms|us|µs)")


def parse_budget(text: str) -> Budget:
    """The budget that a text says.

    Raises:
        CaptureError: it says none; the message has examples.
    """
    words = " ".join(text.split())
    if words == IMPLICIT:
        return Budget(words, "implicit")
    if share := _SHARE.fullmatch(words):
        return Budget(words, "share", float(share["number"]))
    if size := _BYTES.fullmatch(words):
        most = float(size["number"]) * SIZES[size["unit"].lower()]
        return Budget(words, "wire" if size["what"].lower().startswith("wire") else "peak", most)
    if time := _TIME.fullmatch(words):
        return Budget(words, "time", float(time["number"]) * TIMES[time["unit"]])
    count = _COUNT.fullmatch(words)
    if count is None or count["kind"] not in (*get_args(Kind), "collective"):
        raise CaptureError(f"the budget {text!r} cannot be read; expected one as in {EXAMPLES}")
    axes = frozenset(name.strip() for name in (count["axes"] or "").split(",") if name.strip())
    return Budget(words, "collectives", 0 if count["most"] == "none" else int(count["most"]), count["kind"], axes)


def broken(budgets: Sequence[Budget], outline: Fingerprint, peak: PeakMemory | None = None) -> tuple[Broken, ...]:
    """Return the budgets that an outline exceeds. An unknown amount exceeds every budget."""
    return tuple(each for budget in budgets if (each := _broken(budget, outline, peak)) is not None)


def _broken(budget: Budget, outline: Fingerprint, peak: PeakMemory | None) -> Broken | None:
    found, words, transfers = _measured(budget, outline, peak)
    return None if found is not None and found <= budget.most else Broken(budget, words, transfers)


def _measured(budget: Budget, outline: Fingerprint, peak: PeakMemory | None) -> tuple[float | None, str, Counted]:
    """Return the amount that is limited, None if unknown; its wording; and the collectives that it counts."""
    taken, capacity = (None, None) if peak is None else (peak.bytes, peak.capacity)
    match budget.measure:
        case "implicit":
            these = tuple((one, count) for one, count in outline.transfers if one.origin not in REQUESTED)
            return len(these), f"{_counted(these)} that the source does not request", these
        case "wire":
            sent = outline.total_wire
            ordered = sorted(outline.transfers, key=_sent, reverse=True)
            return sent, f"{format_bytes(sent)} per device and run", tuple(ordered)
        case "peak":
            return taken, f"{format_bytes(taken)} per device", ()
        case "share":
            if taken is None or not capacity:
                return None, f"{format_bytes(taken)} of a memory of unknown size", ()
            share = 100 * taken / capacity
            return share, f"{share:.3g} %, {format_bytes(taken)} of {format_bytes(capacity)}", ()
        case "time":
            seconds = outline.costs.get("estimated")
            why = ", as the speed of this target is unknown" if seconds is None else ""
            return seconds, f"an estimated {format_seconds(seconds)}{why}", ()
        case "collectives":
            these = tuple((one, count) for one, count in outline.transfers if _is_meant(one, budget))
            return sum(count for _, count in these), _counted(these), these


def _sent(counted: tuple[Transfer, int]) -> float:
    """Bytes that a device sends; an unknown amount is listed first, since no budget allows for it."""
    one, count = counted
    return math.inf if one.work.total_wire is None else one.work.total_wire * count


def _is_meant(one: Transfer, budget: Budget) -> bool:
    """Return whether a budget covers this kind and axes. Groups that no axes form may span all axes."""
    if budget.kind not in (one.work.kind, "collective"):
        return False
    axes = one.work.axes
    return not budget.axes or axes is None or any(axis.name in budget.axes for axis in axes)


def _counted(these: Counted) -> str:
    return plural(sum(count for _, count in these), "collective")
