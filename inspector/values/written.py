"""Recorded arrays as one reads them: a line for each row."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..capture.protocol.values import Probe
from .elements import Element, shard_elements

DIGITS = 6
"""Significant digits of a float."""


def rows(
    probe: Probe, number: int, height: int, width: int, top: int = 0, left: int = 0
) -> tuple[tuple[str, ...], ...] | None:
    """A window of `height` rows and `width` columns of one shard's recorded elements; None where there are none.

    All dimensions but the last are counted through as rows.
    """
    elements = shard_elements(probe, number)
    if elements is None:
        return None
    columns = probe.extent[-1] if probe.extent else 1
    count = len(elements) // columns if columns else 0
    return tuple(
        tuple(map(element_text, elements[row * columns + left : row * columns + min(left + width, columns)]))
        for row in range(top, min(top + height, count))
    )


def array_lines(probe: Probe, number: int, height: int, width: int, top: int = 0, left: int = 0) -> list[str]:
    """A window of one shard as numpy writes it, from a row and a column on; its figures where elements are left out."""
    cells = rows(probe, number, height, width, top, left)
    shard = probe.shards[number]
    figures = (("min", shard.minimum), ("mean", shard.mean), ("max", shard.maximum))
    shown = " ".join(f"{name} {element_text(value)}" for name, value in figures if value is not None)
    if shard.non_finite:
        shown += f", {shard.non_finite} not finite"
    if cells is None:
        return [shown or "not recorded"]
    if not probe.shape:
        return [cells[0][0] if cells and cells[0] else "not recorded"]
    columns = probe.shape[-1]
    cut = math.prod(probe.shape) > sum(map(len, cells))
    widest = max((len(cell) for row in cells for cell in row), default=0)
    more = " …" if columns > left + max(map(len, cells), default=0) else ""
    lines = [f"[{' '.join(cell.rjust(widest) for cell in row)}{more}]" for row in cells]
    if len(probe.shape) > 1 and lines:
        lines = [f"{'[' if index == 0 else ' '}{line}" for index, line in enumerate(lines)]
        lines[-1] += "]" if not cut else " …"
    return [*lines, f"{shape_text(probe.shape)}: {shown}"] if cut else lines or ["[]"]


def element_text(value: Element) -> str:
    """The shortest text of a number to six significant digits; −0.0 keeps its sign."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        return f"{element_text(value.real)}{'' if str(value.imag).startswith('-') else '+'}{element_text(value.imag)}j"
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{DIGITS}g}"
    return f"{text}." if text.lstrip("-").isdigit() else text


def shape_text(shape: Sequence[int]) -> str:
    """`[2,4]`."""
    return f"[{','.join(map(str, shape))}]"


def coordinates_text(axes: Sequence[str], coordinates: Sequence[int]) -> str:
    """`x=0 y=1`."""
    return " ".join(f"{axis}={place}" for axis, place in zip(axes, coordinates, strict=False))
