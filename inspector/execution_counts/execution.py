"""How often a part of a program runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Execution:
    """`count` executions in one run, None where a bound or a branch is only known at run time.

    `loops` are the names of the enclosing while operations, outermost first, on the first way that leads here.
    """

    count: int | None
    loops: tuple[str, ...] = ()
