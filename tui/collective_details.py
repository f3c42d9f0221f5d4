"""One collective in full: what it does, over which axes, between which devices, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from textual.content import Content

from ..inspector.collectives.spelled import executions_text, groups_text, kind_text, mesh_of, types_text
from ..inspector.cost.places import machine_of
from ..inspector.render.tables.cost import term_text
from ..inspector.render.why_lines import cause_line, remedy_line
from ..inspector.report import Collective, CollectiveCause, Report
from ..inspector.units import format_bytes, format_seconds, plural
from ..parsers.sharding_syntax.replica_groups import Groups
from .mesh_grid import Picture, Traffic, draw, traffic_of
from .painted import axes_content, data, fact, folded, title
from .palette import axis_hues
from .stage_pane import label_of
from .torus_grid import TorusGrid

MAX_CAUSES = 4
"""Operations of a merged collective that are listed."""


def collective_details(
    report: Report, collective: Collective, causes: Sequence[CollectiveCause], width: int, height: int, shown: int = 0
) -> Iterator[Content]:
    """Return a collective's kind, its cause, the picture of the mesh in at most `height` lines, and the facts.

    Of many groups one is `shown`: its number, counted around and around.
    """
    hues = axis_hues(report.meshes)
    over = Content.assemble(" over ", axes_content(collective.axes, hues)) if collective.axes else ""
    yield from folded(Content.assemble((kind_text(collective), "bold"), over), width)
    yield from folded(data(f"{collective.name} · {label_of(collective.stage)}", "$aside"), width)
    yield from _strategy(report, collective, width)
    yield from _causes(report, causes, width)
    yield Content("")
    yield from _amounts(collective, width)
    yield Content("")
    traffic, mesh = traffic_of(collective), mesh_of(collective, report)
    if are_many(traffic.groups):
        traffic = replace(traffic, shown=shown % len(traffic.groups))
    yield from folded(title(groups_text(collective, mesh)), width)
    yield from shown_group(traffic)
    subject = report.capture.subject
    devices = (subject.device_assignment if subject is not None else ()) or tuple(range(mesh.size))
    yield from draw(Picture(mesh, traffic, devices, hues, width, height))
    machine = machine_of(report.program)
    if machine is not None and machine.chip.platform != "gpu":
        yield from TorusGrid(machine, traffic, devices).lines(width, height)
    if len(traffic.groups) > 1 or collective.pairs:
        yield Content("")
        yield from group_lines(traffic, devices, width)
    yield Content("")
    yield from _facts(collective, width)


def _strategy(report: Report, collective: Collective, width: int) -> Iterator[Content]:
    found = next((total for total in report.communication if collective in total.collectives), None)
    if found is not None:
        these = f"{plural(len(found.collectives), found.kind)}, {format_bytes(found.wire_bytes)} per step"
        yield from folded(data(f"{found.strategy}: {these}", "$text-muted"), width)


def _amounts(collective: Collective, width: int) -> Iterator[Content]:
    loops = f", in {' in '.join(collective.loops)}" if collective.loops else ""
    sends = Content.assemble((format_bytes(collective.wire_bytes), "bold"), " per execution")
    yield from fact("sends", sends, width)
    yield from fact("runs", f"{executions_text(collective)} per step{loops}", width)
    if collective.estimate is not None:
        seconds = format_seconds(collective.estimate.seconds)
        yield from fact("est.", Content.assemble((seconds, "bold"), " per execution (cost model)"), width)


def _facts(collective: Collective, width: int) -> Iterator[Content]:
    words = {"user": "you", "explicit": "your reshard or out_sharding", "autodiff": "autodiff"}
    words |= {"partitioner": "the partitioner", "compiler": "the compiler", "mixed": "several"}
    sizes = f"{format_bytes(collective.bytes_in)} → {format_bytes(collective.bytes_out)}"
    yield from fact("device", types_text(collective), width)
    for narrow, wide in collective.widened:
        yield from fact("on CPUs", f"{narrow} is sent as {wide}", width)
    if collective.cpu_call:
        yield from fact("only for", f"the CPU's {collective.cpu_call}", width)
    yield from fact("bytes", sizes, width)
    if collective.estimate is not None:
        yield from fact("model", f"{collective.estimate.link}: {collective.estimate.formula}", width)
        yield from fact("", ", ".join(map(term_text, collective.estimate.terms)), width)
    yield from fact("by", words.get(collective.origin, ""), width)
    yield from fact("pass", "" if collective.direction == "unknown" else collective.direction, width)
    form = filter(None, (collective.fused_form, "async" if collective.is_async else ""))
    yield from fact("form", ", ".join(form), width)
    yield from fact("in", collective.computation, width)
    yield from fact("op_name", collective.op_name or "", width)


def _causes(report: Report, causes: Sequence[CollectiveCause], width: int) -> Iterator[Content]:
    for number, cause in enumerate(causes[:MAX_CAUSES]):
        yield Content("")
        if number == 0:
            yield title("why it is here")
        yield from folded(data(cause_line(cause, report)), width)
        yield from folded(data(remedy_line(cause, report), "$text-muted"), width)


MAX_GROUPS = 8
"""Groups that are all spelled out, each in a colour of its own."""

MAX_DEVICES = 64
"""Devices in groups that are all spelled out."""

MAX_MEMBERS = 512
"""Devices of one group that are spelled out."""


def are_many(groups: Groups) -> bool:
    """Return whether groups are shown one at a time."""
    return len(groups) > MAX_GROUPS or sum(map(len, groups)) > MAX_DEVICES


def shown_group(traffic: Traffic) -> Iterator[Content]:
    """Say which of many groups is shown."""
    if traffic.shown is not None:
        count = f"{traffic.shown + 1:,} of {len(traffic.groups):,}"
        yield Content.assemble(f"{'chain' if traffic.pairs else 'group'} {count}", ("   , . the others", "$aside"))


def group_lines(traffic: Traffic, devices: Sequence[int], width: int) -> Iterator[Content]:
    """The groups, or the one that is shown, as lists of devices; no number is broken."""
    if traffic.shown is None:
        yield from _filled([_spelled(group, traffic, devices) for group in traffic.groups], "  ", width)
        return
    yield from _filled([_spelled(traffic.groups[traffic.shown], traffic, devices)], "", width)


def _spelled(group: Sequence[int], traffic: Traffic, devices: Sequence[int]) -> list[Content]:
    """The pieces of a group between which a line may end."""
    named = [str(devices[p]) if p < len(devices) else str(p) for p in group[:MAX_MEMBERS]]
    named += [f"… {len(group) - MAX_MEMBERS:,} more"] if len(group) > MAX_MEMBERS else []
    sign = "→" if traffic.pairs else ","
    pieces = [f"{name}{sign}" for name in named[:-1]] + named[-1:]
    if not traffic.pairs:
        pieces[0], pieces[-1] = "{" + pieces[0], pieces[-1] + "}"
    return [data(piece, traffic.hue(group[0])) for piece in pieces]


def _filled(groups: Sequence[list[Content]], between: str, width: int) -> Iterator[Content]:
    """Lines as full as they get; a group that fits on a line is not broken."""
    line = Content("")
    for pieces in groups:
        whole = sum(piece.cell_length for piece in pieces)
        if line.plain:
            if line.cell_length + len(between) + whole > width:
                yield line
                line = Content("")
            else:
                line += Content(between)
        for piece in pieces:
            if line.plain and line.cell_length + piece.cell_length > width:
                yield line
                line = Content("")
            line += piece
    if line.plain:
        yield line
