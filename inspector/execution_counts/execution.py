"""The number of executions of a part of a program, and the trip count of a counting loop."""

from __future__ import annotations

from ...parsers.record import Record


class Execution(Record, frozen=True):
    """`count` executions in one run, None where a bound or a branch is only known at run time.

    `most` is the upper bound, as for a branch that may not be taken; None where there is none. `loops` are the names of
    the enclosing while operations, outermost first, on the first way that leads here.
    """

    count: int | None
    loops: tuple[str, ...] = ()
    most: int | None = None


ONCE = Execution(1, most=1)


MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}
"""Comparisons with their sides exchanged."""


def count(start: int, step: int, direction: str, bound: int) -> int | None:
    """Count the values start, start + step, … up to the first that fails `value direction bound`; None if none does."""
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
