"""The number of executions of a part of a program, and the trip count of a counting loop."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from msgspec.structs import force_setattr

from ...parsers.record import Record

MAX_EXECUTIONS = 1 << 63
"""Nothing runs more often in one run; loops in loops that a file makes up may, by more than a float can hold."""


class Execution(Record, frozen=True):
    """`count` executions in one run, None where a bound or a branch is only known at run time.

    `most` is the upper bound, as for a branch that may not be taken; None where there is none. `loops` are the names of
    the enclosing while operations, outermost first, on the first way that leads here.
    """

    count: int | None
    loops: tuple[str, ...] = ()
    most: int | None = None

    def __post_init__(self) -> None:
        """Take for unknown what is beyond belief."""
        for name in ("count", "most"):
            number = getattr(self, name)
            if number is not None and number > MAX_EXECUTIONS:
                force_setattr(self, name, None)


ONCE = Execution(1, most=1)
UNKNOWN = Execution(None)


def callers_first(name: str, known: Container[str], callers: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield what is not known of a computation and all that lead to it, each after its callers.

    Calls in a cycle, which only a broken text has, end at the first computation of the cycle.
    """
    waiting, seen = [(name, False)], set[str]()
    while waiting:
        each, has_callers = waiting.pop()
        if has_callers:
            yield each
        elif each not in seen and each not in known:
            seen.add(each)
            waiting += [(each, True), *((caller, False) for caller in callers(each))]


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
