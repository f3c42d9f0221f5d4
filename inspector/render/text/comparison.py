"""Comparisons, diffs, the results of checks, traces, and comparisons of processes, as one reads them in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os.path import basename

from rich.console import Console, RenderableType
from rich.text import Text

from ...capture.model import Capture
from ...ir.program import Program
from ...report.changes import Change, Diff, Transfer
from ...report.comparison import Comparison
from ...report.traces import Divergence, Trace, ranks_text
from ...report.verdict import Broken, Verdict
from ..headline import headline
from ..printable import printable
from ..tables.comparison import collectives_by_cause, diff_tables, summary, targets, word
from ..tables.traces import endings, headline_parts, programs, ranks_summary, retracings, transfers
from ..validation import validation_lines
from ..why_lines import transfer_offences
from .tables import data, explained, failure, section, subject_lines, table_section, text_of


def print_diff(found: Diff, console: Console, around: int = 0) -> None:
    """Everything that differs, the headline first; of so many changes, the largest, the text around them at the end."""
    console.print(data(headline(found), "bold"))
    console.print(data(f"  before: {found.before.title}", "dim"))
    console.print(data(f"  after:  {found.after.title}", "dim"))
    for table in diff_tables(found):
        console.print()
        console.print(table_section(table))
    for change in found.changes[: max(around, 0)]:
        console.print()
        console.print(_text(found, change))


def _text(found: Diff, change: Change) -> RenderableType:
    """Both sides' texts around a change: what is the same once, what is not with a sign."""
    lines: list[RenderableType] = []
    for facing in found.around(change):
        if facing.same and facing.after is not None:
            lines.append(data(f"  {facing.after.line}", "dim"))
            continue
        lines += [data(f"- {facing.before.line}", "red")] if facing.before is not None else []
        lines += [data(f"+ {facing.after.line}", "green")] if facing.after is not None else []
    present = change.after or change.before
    where = "" if present is None else f"{present.work.kind} {present.name}"
    return section(f"Around {where}", lines or [Text("not available: no text was recorded", "dim")])


def print_verdicts(verdicts: Iterable[Verdict], console: Console) -> None:
    """For each function whether it passed, and all that did not."""
    for verdict in verdicts:
        _print(verdict, console)


def _print(verdict: Verdict, console: Console) -> None:
    sentence = ": ".join(filter(None, (verdict.name, summary(verdict))))
    # In a long log the failures have to stand out without colours.
    outcome = text_of(word(verdict) if verdict.passed else replace(word(verdict), text="FAILED"))
    console.print(Text.assemble(outcome, " ", data(sentence)))
    for over in verdict.broken:
        for line in _over(over, verdict):
            console.print(line, soft_wrap=True)
    if (validation := verdict.report.capture.validation) is not None:
        for piece in validation_lines(validation):
            console.print(Text("  "), text_of(piece), sep="", soft_wrap=True)
    if verdict.changes is not None and verdict.differs:
        changed = [change for change in verdict.changes.changes if change.kind != "regrouped"]
        these = [(one, count * change.count) for change in changed for one, count in change.afters]
        for line in _offences(these, verdict):
            console.print(data(f"    {line}"), soft_wrap=True)
        console.print()
        print_diff(verdict.changes, console)


def _over(over: Broken, verdict: Verdict) -> list[RenderableType]:
    title = data(f"  over budget: {over.budget.text}; there is {over.found}", "red")
    return [title, *(data(f"    {line}") for line in _offences(over.transfers, verdict))]


def _offences(transfers: Sequence[tuple[Transfer, int]], verdict: Verdict) -> Iterator[str]:
    stage = verdict.report.program.stage(verdict.found.stage)
    collectives = () if stage is None else verdict.report.on_demand.collectives(stage)
    return transfer_offences(transfers, verdict.found.stage, verdict.report, collectives)


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print each target's subject, its problems, and the table."""
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        if (why := failure(report, below_subject=False)) is None:
            console.print(*subject_lines(report), sep="\n")
        else:
            console.print(data(f"{target}:"))
            console.print(why)
    console.print()
    console.print(table_section(collectives_by_cause(comparison)))
    console.print()
    console.print(table_section(targets(comparison)))
    if lines := list(_unlike_others(comparison)):
        console.print()
        console.print(section("Findings on other targets", lines))


def _unlike_others(comparison: Comparison) -> Iterator[RenderableType]:
    for target, report in zip(comparison.targets, comparison.reports, strict=True):
        for found in report.findings:
            others = [f"{key}: {said}" for key, said in found.evidence if key.removeprefix("on ") in comparison.targets]
            if others:
                yield data(f"{target}  {found.rule}  {found.message}")
                yield data(f"  {'; '.join(others)}")


def print_trace(trace: Trace, console: Console) -> None:
    """Print everything that has something to say."""
    console.print(trace_headline(trace))
    if not trace.processes:
        console.print("  no Python process compiled a program with JAX, or none could be recorded")
        return
    if trace.explanation is not None:
        console.print()
        console.print(explained(trace.explanation, Program(Capture())))
    raised = [process.failure for process in trace.processes if process.failure is not None]
    if raised:
        messages = dict.fromkeys(failure.message for failure in raised)
        hints = dict.fromkeys(f"hint: {failure.hint}" for failure in raised if failure.hint)
        console.print()
        console.print(section("The script raised", [*(data(each, "bold red") for each in messages), *map(data, hints)]))
    for divergence in trace.ranks.divergences:
        console.print()
        console.print(divergence_section(divergence))
    for table in (programs(trace), transfers(trace), retracings(trace)):
        if (shown := table_section(table)) is not None:
            console.print()
            console.print(shown)
    console.print()
    for line in endings(trace):
        console.print(data(line, "dim"))


def trace_headline(trace: Trace) -> Text:
    """The command, what it ran on, and how it ended."""
    command, *others = map(printable, headline_parts(trace))
    return Text.assemble((command, "bold"), *(f"   {part}" for part in others))


def divergence_section(divergence: Divergence) -> RenderableType:
    """A difference, and below it what each group of ranks does."""
    return section(divergence.title, list(_sides(divergence)))


def _sides(divergence: Divergence) -> Iterator[RenderableType]:
    names = [ranks_text(side.ranks) for side in divergence.sides]
    width = max(map(len, names))
    for name, side in zip(names, divergence.sides, strict=True):
        line = Text.assemble((f"{name}:".ljust(width + 2), "bold"), data(side.text))
        if side.place is not None:
            line.append_text(data(f"   {basename(side.place.file)}:{side.place.line}", "cyan"))
        yield line


def print_ranks(trace: Trace, console: Console) -> None:
    """Print where the processes differ, or that they do not."""
    console.print(trace_headline(trace))
    console.print()
    for divergence in trace.ranks.divergences:
        console.print(divergence_section(divergence))
        console.print()
    for line in ranks_summary(trace):
        console.print(data(line))
