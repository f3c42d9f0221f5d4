"""Draws the chips of a slice where they are on its torus, and who of them communicates with whom.

torus 4×4×1, closed along x and y     x runs to the right, y down, and each place along z is a grid of its own.
     ┃   ┃   ┃   ┃                    A line that leaves a grid on one side comes in on the other: there the
  ━━ 0 ━ 1 ━ 2 ━ 3 ━━                 torus is closed, and both ends are of one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from textual.content import Content

from ..inspector.report.report import Torus
from ..inspector.units import grouped
from .mesh_grid import Traffic
from .painted import folded, title

AXES = "xyz"

MAX_PLANES = 16


class TorusGrid:
    """The chips of the first slice; several cores of one chip stand together."""

    def __init__(self, torus: Torus, traffic: Traffic, names: Sequence[int]) -> None:
        self.shape, self.closed, self.traffic = torus.shape, torus.closed, traffic
        numbered = enumerate(torus.devices)
        self.chips = grouped((tuple(d.coords), n) for n, d in numbered if d.slice == torus.devices[0].slice)
        self._names = names
        self.width = max((len(self._name(chip)) for chip in self.chips), default=1)

    def lines(self, width: int, height: int) -> Iterator[Content]:
        """The planes below each other, in so many columns and about as many lines; nothing that does not fit."""
        columns, rows, planes = (*self.shape, 1, 1, 1)[:3]
        if max(columns, rows, planes) < 2 or columns * (self.width + 3) + 6 > width or not self.chips:
            return
        around = [axis for axis, closed in zip(AXES, self.closed, strict=False) if closed]
        closed = f", closed along {', '.join(around)}" if around else ", open on all sides"
        yield Content("")
        yield from folded(title(f"torus {'×'.join(map(str, self.shape))}{closed}"), width)
        drawn = 0
        for plane in islice(self._planes(planes), MAX_PLANES):
            these = list(self._plane(plane, columns, rows))
            if drawn and drawn + len(these) > height:
                break
            if planes > 1:
                yield Content.styled(f"z {plane}", "$aside")
            yield from these
            drawn += len(these) + 1
        else:
            return
        yield Content.styled("… and the other planes along z", "$aside")

    def _planes(self, count: int) -> Iterator[int]:
        """Return the planes, that of the shown group first."""
        shown = self.traffic.groups[self.traffic.shown] if self.traffic.shown is not None else ()
        held = {chip[2] for chip, cores in self.chips.items() if len(chip) > 2 and set(cores) & set(shown)}
        yield from sorted(range(count), key=lambda plane: (plane not in held, plane))

    def _plane(self, plane: int, columns: int, rows: int) -> Iterator[Content]:
        if any(self._around((x, rows - 1, plane), (x, 0, plane), 1) for x in range(columns)):
            yield self._ends(plane, columns, rows)
        for y in range(rows):
            chips = [(x, y, plane) for x in range(columns)]
            left = self._around(chips[-1], chips[0], 0)
            pieces = [(f"  {'━━' if left else '  '} ", self._hue(chips[0]))]
            for number, chip in enumerate(chips):
                if number:
                    pieces.append((f" {self._across(chips[number - 1], chip)} ", self._hue(chip)))
                pieces.append((f"{self._name(chip):>{self.width}}", f"bold {self._hue(chip)}"))
            yield Content.assemble(*pieces, (" ━━" if left else "", self._hue(chips[0])))
        if any(self._around((x, rows - 1, plane), (x, 0, plane), 1) for x in range(columns)):
            yield self._ends(plane, columns, rows)

    def _ends(self, plane: int, columns: int, rows: int) -> Content:
        signs = (
            ("┃" if self._around((x, rows - 1, plane), (x, 0, plane), 1) else " ", self._hue((x, 0, plane)))
            for x in range(columns)
        )
        return Content.assemble("     ", *((f"{sign:>{self.width}}   ", style) for sign, style in signs))

    def _around(self, last: tuple[int, ...], first: tuple[int, ...], axis: int) -> bool:
        """Return whether a group wraps around the edge."""
        is_ring = axis < len(self.closed) and self.closed[axis] and last != first
        return is_ring and self._across(last, first) == "━"

    def _across(self, one: tuple[int, ...], other: tuple[int, ...]) -> str:
        groups = [{self.traffic.group_of.get(core) for core in self._cores(chip)} - {None} for chip in (one, other)]
        shown = {self.traffic.shown} if self.traffic.shown is not None else groups[0]
        return "━" if groups[0] & groups[1] & shown else " "

    def _cores(self, chip: tuple[int, ...]) -> list[int]:
        return self.chips.get(chip) or self.chips.get(chip[:2], [])

    def _name(self, chip: tuple[int, ...]) -> str:
        return ",".join(str(self._names[p]) if p < len(self._names) else str(p) for p in self._cores(chip)) or "·"

    def _hue(self, chip: tuple[int, ...]) -> str:
        cores = self._cores(chip)
        return self.traffic.hue(cores[0] if cores else None)
