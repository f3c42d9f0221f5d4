"""The order of rows by a column: numbers with their units, the largest first; anything else as text."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(?:at least |<|\+)?(-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(%|×|[KMGTP]i?B?|B|[nµm]?s)?")

_UNITS = {
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGTP", 1)},
    **{f"{prefix}{unit}": 1000.0**power for power, prefix in enumerate("KMGTP", 1) for unit in ("", "B")},
    "ns": 1e-9,
    "µs": 1e-6,
    "ms": 1e-3,
}


def sort_key(text: str) -> tuple[int, float, str]:
    """The key of a cell; empty cells and unknown numbers come last."""
    said = text.strip()
    if said in ("", "?", "–", "not counted"):
        return 2, 0.0, ""
    found = _NUMBER.match(said)
    if found is None:
        return 1, 0.0, said.lower()
    return 0, -float(found[1].replace(",", "")) * _UNITS.get(found[2] or "", 1.0), said[found.end() :].lower()
