"""How often a counting loop runs: start, step, and the comparison under which it goes on."""

from __future__ import annotations

MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}
"""Comparisons with their sides exchanged."""


def count(start: int, step: int, direction: str, bound: int) -> int | None:
    """How many of start, start + step, … satisfy `value direction bound`, from the first on; None for no end."""
    match direction:
        case "LT" if step > 0:
            return max(0, -((start - bound) // step))
        case "LE" if step > 0:
            return max(0, -((start - bound - 1) // step))
        case "GT" if step < 0:
            return max(0, -((bound - start) // -step))
        case "GE" if step < 0:
            return max(0, -((bound - start - 1) // -step))
        case "NE" if step and (bound - start) % step == 0 and (bound - start) // step >= 0:
            return (bound - start) // step
    return None
