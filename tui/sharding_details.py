"""A sharded value in full: requested and actual sharding, its parts on devices, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.content import Content

from ..inspector.render.sharding_grid import grid_lines
from ..inspector.render.why_lines import conflict_line, origin_text, side_text, sides
from ..inspector.report import Conflict, Report, ShardedValue, Why
from ..inspector.selection.selection import Selection
from ..inspector.units import format_bytes, plural
from .painted import axes_content, data, fact, folded, title
from .palette import axis_hues

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
