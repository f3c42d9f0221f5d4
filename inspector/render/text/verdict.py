"""The result of a check, as one reads it in the log of continuous integration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from ...check.budget import Broken
from ...check.verdict import Verdict
from ...collectives.stage import collectives_of
from ...diff.outline import Transfer
from ..offences import transfer_offences
from ..tables.verdicts import summary, word
from .diff import print_diff
from .pieces import data
from .tables import text_of


def print_verdicts(verdicts: Iterable[Verdict], console: Console) -> None:
    """For each function whether it passed, and all that did not."""
    for verdict in verdicts:
        _print(verdict, console)


def _print(verdict: Verdict, console: Console) -> None:
    told = ": ".join(filter(None, (verdict.name, summary(verdict))))
    console.print(Text.assemble(text_of(word(verdict)), " ", data(told)))
    for over in verdict.broken:
        for line in _over(over, verdict):
            console.print(line)
    if verdict.changes is not None and verdict.differs:
        changed = [change for change in verdict.changes.changes if change.kind != "regrouped"]
        these = [(one, count * change.count) for change in changed for one, count in change.afters]
        for line in _offences(these, verdict):
            console.print(data(f"    {line}"))
        console.print()
        print_diff(verdict.changes, console)


def _over(over: Broken, verdict: Verdict) -> list[RenderableType]:
    title = data(f"  over budget: {over.budget.text}; there is {over.found}", "red")
    return [title, *(data(f"    {line}") for line in _offences(over.transfers, verdict))]


def _offences(transfers: Sequence[tuple[Transfer, int]], verdict: Verdict) -> Iterator[str]:
    stage = verdict.report.program.stage(verdict.found.stage)
    collectives = () if stage is None else collectives_of(verdict.report.program, stage)
    return transfer_offences(transfers, verdict.found.stage, verdict.report, collectives)
