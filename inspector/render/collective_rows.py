"""Collectives as rows of a table, those that differ in nothing that is shown as one row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...parsers.record import Record
from ..report import BoundaryOrigin, Collective, Report
from ..report.position import CallSites, call_sites, with_call_site
from ..report.spelled import argument_of, axes_text, executions_text, kind_text, source_text, types_text
from ..units import format_bytes, format_seconds, grouped, known_sum

_STEP = r"(?:[/\[]|\.(?!(?:raw_)?value\b))"
"""The start of a key in a path. NNX ends paths in `.value`."""

INDEX = re.compile(rf"""(\[\d+\]|(?<=[A-Za-z_])\d+(?=['"]?\]?{_STEP}[^./\[]*{_STEP}))""")
"""The number of a layer in a path: an index, or that of a module of modules, as in `['Block_3']['mlp']['w']`.

Not that in `['Dense_1']['kernel']`: modules of one layer have such names too.
"""

_NUMBER = re.compile(r"\d+")

SHORT_PASS = {"forward": "fwd", "backward": "bwd", "recompute": "remat", "unknown": ""}


class CollectiveRow(Record, frozen=True):
    """One kind of transfer from one place, `count` times; `wire_bytes` and `executions` are of each."""

    count: int
    kind: str
    axes: str
    types: str
    wire_bytes: int | None
    executions: str
    origin: str
    direction: str
    source: str
    collectives: tuple[Collective, ...]

    @property
    def total_wire(self) -> int | None:
        """Bytes that a device sends for all of them, in one run of the program."""
        return total_wire(self.collectives)


def total_seconds(collectives: Iterable[Collective]) -> float | None:
    """Estimated seconds for all of them, one after another, in one run of the program; None where one is not known."""
    return known_sum(each.step_seconds for each in collectives)


def cause_text(collectives: Sequence[Collective]) -> list[str]:
    """Return a target's collectives for one cause, one text per kind: `2× all-gather 1.88 KiB, 4 µs`."""
    texts = []
    for kind, these in grouped((kind_text(collective), collective) for collective in collectives).items():
        times = f"{len(these)}× " if len(these) > 1 else ""
        seconds = total_seconds(these)
        estimated = "" if seconds is None else f", {format_seconds(seconds)}"
        texts.append(f"{times}{kind} {format_bytes(total_wire(these))}{estimated}")
    return texts


def total_wire(collectives: Iterable[Collective]) -> int | None:
    """Bytes that a device sends for all of them, in one run of the program; None where one is not known."""
    return known_sum(each.step_bytes for each in collectives)


def most_wire(collectives: Iterable[Collective]) -> int | None:
    """The upper bound of the same, each executed as often as it can be; None where one has none."""
    return known_sum(each.most_step_bytes for each in collectives)


def rows_of(collectives: Iterable[Collective], report: Report) -> tuple[CollectiveRow, ...]:
    """Rows in the order in which their first collective stands in the text."""
    sites = call_sites(each.source for each in report.collectives)
    groups = grouped((_shown(collective, report, sites), collective) for collective in collectives)
    return tuple(_row(members, report, sites) for members in groups.values())


def _row(members: list[Collective], report: Report, sites: CallSites) -> CollectiveRow:
    first = members[0]
    moved = common_name([argument_of(member) or "" for member in members])
    source = _place(first, report, sites)
    return CollectiveRow(
        count=len(members),
        kind=kind_text(first),
        axes=axes_text(first),
        types=types_text(first),
        wire_bytes=first.wire_bytes,
        executions=executions_text(first),
        origin=first.origin if first.origin != "unknown" else "",
        direction=SHORT_PASS[first.direction],
        source=", for ".join(filter(None, (moved, source, first.cpu_call and f"the CPU's {first.cpu_call}"))),
        collectives=tuple(members),
    )


def _shown(collective: Collective, report: Report, sites: CallSites) -> tuple[object, ...]:
    return (
        kind_text(collective),
        axes_text(collective),
        types_text(collective),
        collective.wire_bytes,
        collective.executions,
        collective.origin,
        collective.direction,
        _place(collective, report, sites),
        INDEX.sub("[#]", argument_of(collective) or ""),
        collective.cpu_call,
    )


def _place(collective: Collective, report: Report, sites: CallSites) -> str:
    """Its line, with that which calls a helper that several call; or its output."""
    return with_call_site(sites, collective.source, source_text(collective, report), report.script) or output_of(
        collective, report
    )


def output_of(collective: Collective, report: Report) -> str:
    """The output that a collective without a line is there for: `output result['loss']`."""
    if collective.source.frame is not None:
        return ""
    operations = (cause.operation for cause in report.on_demand.causes(collective))
    return next((str(each) for each in operations if isinstance(each, BoundaryOrigin)), "")


def common_name(names: Sequence[str]) -> str:
    """Names that differ in the numbers of layers only as one: `layers[*]['w']`."""
    parts = zip(*(INDEX.split(name) for name in names), strict=True)
    return "".join(part[0] if len(set(part)) == 1 else _NUMBER.sub("*", part[0]) for part in parts)


def folded_names(names: Iterable[str]) -> list[str]:
    """Names that differ in the numbers of layers only as one, in their order: `layers[*]['w']`."""
    return list(map(common_name, grouped((INDEX.sub("[#]", name), name) for name in names).values()))
