"""Collectives and sharded values in full.

Of a collective what it does, over which axes, between which devices, and where it comes from; of a value the requested
and the actual sharding, its parts on devices, and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from textual.content import Content

from ..inspector.render.sharding_grid import grid_lines
from ..inspector.render.tables.cost import term_text
from ..inspector.render.why_lines import cause_line, conflict_line, origin_text, remedy_line, side_text, sides
from ..inspector.report import Collective, CollectiveCause, Conflict, Report, ShardedValue, Why
from ..inspector.report.places import Selection
from ..inspector.report.spelled import executions_text, groups_text, kind_text, mesh_of, types_text
from ..inspector.units import format_bytes, format_seconds, plural
from ..parsers.sharding_syntax.replica_groups import Groups
from .mesh_grid import Picture, Traffic, draw, traffic_of
from .painted import axes_content, axis_hues, data, fact, folded, title
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
    yield from draw(Picture(mesh, traffic, devices, axis_hues=hues, width=width, height=height))
    if (torus := report.on_demand.torus()) is not None:
        yield from TorusGrid(torus, traffic, devices).lines(width, height)
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


SIGN = len("  rejected ")
"""Columns of the words chosen and rejected."""


def sharding_details(report: Report, value: ShardedValue, linked: Selection | None, width: int) -> Iterator[Content]:
    """The facts, the drawing, and, once it is known, how the value came to be sharded so: a tree for each axis."""
    yield from folded(Content.assemble(data(value.name, "bold"), data(f"  {value.role}", "$aside")), width)
    yield Content("")
    yield from fact("type", str(value.type), width)
    yield from fact("device", "" if value.local_type is None else str(value.local_type), width)
    yield from fact("requested", value.requested or "unconstrained", width)
    actual = data(value.spec or "?", "bold $error" if value.agrees is False else "bold")
    yield from fact("actual", actual, width)
    yield from fact("copies", f"{format_bytes(value.replicated_bytes)} per device", width)
    yield from fact("inside", f"shard_map over {', '.join(value.manual)}" if value.manual else "", width)
    yield from _drawing(report, value, width)
    if linked is None:
        yield Content("")
        yield Content.styled("tracing where this sharding comes from …", "$aside")
        return
    hues = axis_hues(report.meshes)
    for found in linked.why:
        yield Content("")
        yield from _tree(found, report, hues, width)
    yield from _conflicts(linked.conflicts, report, width)


def _conflicts(found: Sequence[Conflict], report: Report, width: int) -> Iterator[Content]:
    if found:
        yield Content("")
        yield title("conflicts")
    for conflict in found:
        yield from folded(data(conflict_line(conflict, report), "bold"), width)
        for sign, side in sides(conflict):
            for number, line in enumerate(folded(data(side_text(side, report)), width - SIGN)):
                yield Content.assemble((f"  {sign} ", "$aside") if number == 0 else " " * SIGN, line)


def _drawing(report: Report, value: ShardedValue, width: int) -> Iterator[Content]:
    shape = value.type.shape
    if value.sharding is None or shape is None or len(shape) != len(value.sharding.dims):
        return
    subject = report.capture.subject
    yield Content("")
    yield title("devices")
    for line in grid_lines(value.sharding, shape, () if subject is None else subject.device_assignment, width):
        yield data(line).truncate(width, ellipsis=True)


def _tree(found: Why, report: Report, hues: Mapping[str, str], width: int) -> Iterator[Content]:
    where = "unreduced" if found.dim is None else f"dim {found.dim}"
    head = Content.assemble(axes_content((found.axis,), hues), f" on {where} ← ", data(origin_text(found, report)))
    yield from folded(head, width)
    for number, step in enumerate(found.steps):
        last = number == len(found.steps) - 1 and not found.omitted
        place = step.place.text(report.script)
        numbered = "" if step.number is None else f"step {step.number}"
        details = ", ".join(filter(None, (place, numbered)))
        yield Content.assemble(
            ("└ " if last else "├ ", "$aside"), data(str(step.operation or "return")), data(f"  {details}", "$aside")
        ).truncate(width, ellipsis=True)
        sign = "  " if last else "│ "
        if step.rule:
            yield Content.assemble((f"{sign}  ", "$aside"), data(step.rule, "$text-muted")).truncate(
                width, ellipsis=True
            )
        yield Content.assemble((f"{sign}  ", "$aside"), data(f"{step.target} ← {step.source}")).truncate(
            width, ellipsis=True
        )
    if found.omitted:
        text = f"{plural(found.omitted, 'more step')}, back to {found.root}"
        yield Content.assemble(("└ ", "$aside"), data(text, "$text-muted")).truncate(width, ellipsis=True)
