"""Drawings of a mesh: its devices, those of one group in one colour; for transfers between pairs, lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ....parsers.sharding_syntax.mesh import MeshSyntax
from ....parsers.sharding_syntax.replica_groups import Groups
from ...ir.meshes import partitions_of
from ...report import Collective, Report
from ...report.spelled import axes_text, groups_text, mesh_of
from .elements import element, text

SIDE, GAP, MARGIN = 26, 6, 30
"""Pixels of a device that has its number, between two, and around all."""

MAX_NUMBERED = 64
"""Devices of a mesh that are numbered; of larger ones each is a small square."""

MAX_DEVICES = 4096
MAX_LINES = 256
MAX_DRAWINGS = 12
COLOURS = 8


def mesh_key(collective: Collective) -> object:
    """The key that collectives with equal drawings share."""
    return collective.axes or (collective.groups, collective.pairs), bool(collective.pairs)


def drawings(report: Report, collectives: Iterable[Collective]) -> Mapping[object, str]:
    """The drawing of each way to group devices, in the order in which collectives first use them."""
    found: dict[object, str] = {}
    for collective in collectives:
        key = mesh_key(collective)
        if key not in found and len(found) < MAX_DRAWINGS and (collective.groups or collective.pairs):
            mesh = mesh_of(collective, report)
            if mesh.size <= MAX_DEVICES:
                found[key] = _drawing(mesh, collective, report)
    return found


def _drawing(mesh: MeshSyntax, collective: Collective, report: Report) -> str:
    is_numbered = mesh.size <= MAX_NUMBERED
    side = SIDE if is_numbered else 8
    places = _places(mesh, side, GAP if is_numbered else 1)
    width = max((x for x, _ in places.values()), default=0) + side + MARGIN
    height = max((y for _, y in places.values()), default=0) + side + 4
    parts = [*_squares(places, collective, side), *_names(mesh, side, GAP if is_numbered else 1)]
    if is_numbered:
        subject = report.capture.subject
        assigned = () if subject is None else subject.device_assignment
        for partition, (x, y) in places.items():
            number = assigned[partition] if partition < len(assigned) else partition
            parts.append(f'<text class="on" x="{x + side / 2:g}" y="{y + side / 2 + 4:g}">{number}</text>')
    parts += _ways(places, collective.pairs[:MAX_LINES], side)
    picture = f'<svg width="{width}" height="{height}" role="img">{"".join(parts)}</svg>'
    return picture + element("figcaption", text(_caption(mesh, collective)))


def _caption(mesh: MeshSyntax, collective: Collective) -> str:
    words = groups_text(collective, mesh)
    if not collective.pairs:
        return words
    more = f", {MAX_LINES} of them drawn" if len(collective.pairs) > MAX_LINES else ""
    return f"{axes_text(collective)}: {words}{more}"


def _places(mesh: MeshSyntax, side: int, gap: int) -> dict[int, tuple[int, int]]:
    """The origin of each partition's square: the last axis to the right, the one before it down, others as blocks."""
    rows, columns = ([1, 1] + [size for _, size in mesh.axes])[-2:]
    blocks = max(1, math.ceil(math.sqrt(mesh.size // (rows * columns) or 1)))
    found = {}
    for position, partition in enumerate(partitions_of(mesh)):
        block, inside = divmod(position, rows * columns)
        row, column = divmod(inside, columns)
        x = MARGIN + (block % blocks) * (columns * (side + gap) + 2 * gap + 8) + column * (side + gap)
        y = MARGIN + (block // blocks) * (rows * (side + gap) + 2 * gap + 8) + row * (side + gap)
        found[partition] = (x, y)
    return found


def _squares(places: Mapping[int, tuple[int, int]], collective: Collective, side: int) -> Iterator[str]:
    """The squares as one path for each colour, and one for those that take no part."""
    groups: Groups = collective.groups or tuple((source,) for source, _ in collective.pairs)
    colours: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        colours.setdefault(0 if collective.pairs else number % COLOURS, []).extend(group)
    taken = {partition for members in colours.values() for partition in members}
    yield _path("apart", (places[each] for each in places if each not in taken), side)
    for colour, members in colours.items():
        yield _path(f"g{colour}", (places[each] for each in members if each in places), side)


def _path(style: str, corners: Iterable[tuple[int, int]], side: int) -> str:
    drawn = "".join(f"M{x} {y}h{side}v{side}h-{side}z" for x, y in corners)
    return f'<path class="{style}" d="{drawn}"/>' if drawn else ""


def _names(mesh: MeshSyntax, side: int, gap: int) -> Iterator[str]:
    """The two innermost axes, with the way they run."""
    names = [name for name, _ in mesh.axes[-2:]]
    if len(names) > 1:
        yield f'<text class="label" style="text-anchor:start" x="2" y="{MARGIN - 18}">{text(names[0])} ↓</text>'
    if names:
        yield f'<text class="label" style="text-anchor:start" x="{MARGIN}" y="{MARGIN - 5}">{text(names[-1])} →</text>'


def _ways(places: Mapping[int, tuple[int, int]], pairs: Sequence[tuple[int, int]], side: int) -> Iterator[str]:
    for source, target in pairs:
        if source in places and target in places and source != target:
            (x, y), (u, v) = places[source], places[target]
            half = side / 2
            bend = (x + u) / 2 + (v - y) / 4 + half, (y + v) / 2 - (u - x) / 4 + half
            yield (
                f'<path class="way" d="M{x + half:g} {y + half:g}Q{bend[0]:g} {bend[1]:g} {u + half:g} {v + half:g}"/>'
                f'<circle cx="{u + half:g}" cy="{v + side - 3:g}" r="2"/>'
            )
