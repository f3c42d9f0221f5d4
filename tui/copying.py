"""Parts of a selection that can be copied, by name."""

from __future__ import annotations

from collections.abc import Iterator

from ..inspector.capture.model import Failure, OutputSummary, Value
from ..inspector.render.finding_facts import where
from ..inspector.report import Collective, Finding, PlacedMessage, Report, ShardedValue, file_and_line
from ..inspector.report.edits import diff_of
from ..inspector.report.places import ProbePlace, Selection, StagePlace
from ..parsers.errors import Problem
from ..parsers.sharding_syntax.replica_groups import Groups
from .entry_details import Selected
from .text_view import TextView

LINE = "the line"

MAX_BYTES = 500_000
"""Size of a text that terminals take: tmux drops sequences of more than a megabyte, two thirds of it in base64."""

Part = tuple[str, str]
"""A name, and the text that is copied."""


def copies(report: Report, selected: Selected | None, linked: Selection | None, line: str) -> Iterator[Part]:
    """Names and texts, the likeliest first; `line` is the text in which what is selected stands."""
    match selected:
        case Finding():
            if patch := "\n".join(diff_of(report.program, selected.proposal)):
                yield "the patch", f"{patch}\n"
            yield "the message", selected.message
            yield "the place", where(selected)
        case ShardedValue():
            yield from _specs(selected.spec, selected.requested)
            yield "the name", selected.name
            yield "the type", str(selected.type)
        case Value() | OutputSummary():
            requested = selected.spec if isinstance(selected, Value) else None
            yield from _specs(selected.actual if isinstance(selected, Value) else selected.spec, requested)
            yield "the name", selected.path
            yield "the type", selected.type
        case ProbePlace(number) if number < len(report.probes):
            yield "the name", report.probes[number].name
            yield "the type", str(report.probes[number].type)
        case Failure():
            yield "the message", selected.message
            if selected.details:
                yield "the traceback", selected.details
        case PlacedMessage() | Problem():
            yield "the message", selected.message.text if isinstance(selected, PlacedMessage) else str(selected)
    if line.strip():
        yield LINE, line.strip()
    collective = selected if isinstance(selected, Collective) else None if linked is None else linked.collective
    if collective is not None:
        yield "the instruction's name", collective.name
        if collective.groups:
            yield "the replica groups", groups_text(collective.groups)
    if isinstance(selected, StagePlace):
        for value in report.on_demand.values_at(selected):
            if not value.manual:  # there it is the rest, which the shard_map leaves to the partitioner
                yield from _specs(value.spec, value.requested)
    if linked is not None and linked.stack:
        frame = linked.stack[linked.own_frame]
        yield "the place in the source", file_and_line(frame.file, frame.line)


def whole_text(view: TextView | None) -> Iterator[Part]:
    """All lines of a text, unless the clipboard has no room for them."""
    if view is not None and len(view.source.data) <= MAX_BYTES:
        yield f"all {view.index.count:,} lines", view.source.text()


def _specs(actual: str | None, requested: str | None) -> Iterator[Part]:
    if actual:
        yield "the actual PartitionSpec", actual
    if requested:
        yield "the requested PartitionSpec", requested


def groups_text(groups: Groups) -> str:
    """`{{0,1},{2,3}}`, as HLO writes them."""
    return f"{{{','.join('{' + ','.join(map(str, group)) + '}' for group in groups)}}}"
