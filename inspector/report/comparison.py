"""The collectives of several targets, those of one cause side by side."""

from __future__ import annotations

from ...parsers.record import Record
from . import Collective, Pass, Report


class Cause(Record, frozen=True):
    """The reason for a communication, as far as compilers leave it visible, and its axes.

    `source` is a line of the user's, or what is moved; empty where nothing is known.
    """

    source: str
    direction: Pass
    axes: str


class CauseRow(Record, frozen=True):
    """Each target's communication for one cause; `cells` has the collectives of each, in the order of the targets."""

    cause: Cause
    cells: tuple[tuple[Collective, ...], ...]


class Comparison(Record, frozen=True):
    """Reports of the same function, by target as it was asked for, and their collectives row by row."""

    targets: tuple[str, ...]
    reports: tuple[Report, ...]
    rows: tuple[CauseRow, ...]


COMPILED = "hlo"
"""The stage that is compared: what runs."""


def is_compiled(report: Report) -> bool:
    """True if the program was compiled far enough for its collectives to be known."""
    return report.capture.stage(COMPILED) is not None
