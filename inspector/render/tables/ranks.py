"""The words of a comparison of processes: what is equal, what is not known, and how the run ended."""

from __future__ import annotations

from collections.abc import Iterator

from ...traces.ranks import RankComparison, ranks_text
from ...traces.trace import Trace
from ...units import format_seconds, plural


def outcome(found: RankComparison) -> str:
    """`2 differences between ranks 0–3`, or that none was found; empty where no two ranks were compared."""
    if len(found.ranks) < 2:
        return ""
    count = plural(len(found.divergences), "difference") if found.divergences else "no differences found"
    return f"{count} between {ranks_text(found.ranks)}"


def ranks_summary(trace: Trace, found: RankComparison) -> Iterator[str]:
    """The compared programs, and those that could not be compared."""
    programs = plural(found.same, "program") if found.same else "No program"
    if found.ranks:
        yield f"{programs} of several processes {'are' if found.same > 1 else 'is'} equal in {ranks_text(found.ranks)}."
    yield from (f"Not known: {each}." for each in found.unknown)
    if trace.ended:
        yield f"Ended by shardscope: {trace.ended}."
    for process in trace.processes:
        if process.failure is not None:
            yield f"{'' if process.rank is None else f'rank {process.rank}: '}{process.failure.message}"
    yield from dict.fromkeys(f"{each.level}: {each.text}" for process in trace.processes for each in process.messages)
    if trace.seconds is not None:
        yield f"The processes took {format_seconds(trace.seconds)}."
