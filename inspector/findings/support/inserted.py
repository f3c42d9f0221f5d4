"""The collectives of the compiled program that the partitioner inserted, and what they are there for."""

from __future__ import annotations

from collections.abc import Iterator

from ...correspondence.collectives import is_combined
from ...report import Collective, CollectiveCause, Report
from ...shardings.collective_causes import causes_of, is_inserted
from .compiled import in_hlo


def inserted_collectives(report: Report) -> Iterator[tuple[Collective, tuple[CollectiveCause, ...]]]:
    """The collectives of the compiled program that the partitioner inserted, each with what it is there for."""
    for collective in in_hlo(report):
        if collective.origin == "partitioner":
            yield collective, causes_of(report.program, collective)


def moved_by_the_partitioner(report: Report) -> Iterator[tuple[Collective, CollectiveCause]]:
    """The same, and those that were merged with what the user wrote, once for each operation that they are there for.

    Of those that were not merged, for the likeliest one.
    """
    for collective in in_hlo(report):
        if collective.origin != "unknown" and is_inserted(collective):
            causes = causes_of(report.program, collective)
            for cause in causes if is_combined(collective) else causes[:1]:
                yield collective, cause


def dimension_of(cause: CollectiveCause) -> str:
    """Return the communicated dimension in words, without the numbers of the propagated program."""
    if cause.moved is None:
        return ""
    made_by = cause.moved.made_by
    return f"dimension {cause.moved.dim} of {cause.moved.value if made_by is None else f'the {made_by} result'}"
