"""Parts of a selection that can be copied, by name."""

from __future__ import annotations

from collections.abc import Iterator

from ..inspector.findings.fixes.apply import diff_of
from ..inspector.render.finding_facts import where
from ..inspector.report import Collective, Finding, Report, ShardedValue, file_and_line
from ..inspector.selection.selection import Selection
from ..parsers.sharding_syntax.replica_groups import Groups
from .entry_details import Selected


def copies(report: Report, selected: Selected | None, linked: Selection | None, line: str) -> Iterator[tuple[str, str]]:
    """Names and texts, the likeliest first; `line` is the text in which what is selected stands."""
    match selected:
        case Finding():
            if patch := "\n".join(diff_of(report.program, selected.proposal)):
                yield "the patch", f"{patch}\n"
            yield "the message", selected.message
            yield "the place", where(selected)
        case ShardedValue():
            if selected.spec:
                yield "the actual PartitionSpec", selected.spec
            if selected.requested:
                yield "the requested PartitionSpec", selected.requested
            yield "the name", selected.name
            yield "the type", str(selected.type)
    if line.strip():
        yield "the line", line.strip()
    collective = selected if isinstance(selected, Collective) else None if linked is None else linked.collective
    if collective is not None:
        yield "the instruction's name", collective.name
        if collective.groups:
            yield "the replica groups", groups_text(collective.groups)
    for frame in linked.stack[:1] if linked is not None else ():
        yield "the place in the source", file_and_line(frame.file, frame.line)


def groups_text(groups: Groups) -> str:
    """`{{0,1},{2,3}}`, as HLO writes them."""
    return f"{{{','.join('{' + ','.join(map(str, group)) + '}' for group in groups)}}}"
