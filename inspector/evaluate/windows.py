"""Windows over arrays: `convolution`, `reduce-window`, `select-and-scatter`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product as positions

import numpy as np

from .arrays import combined, padded
from .element_types import TYPES, Array, Value, array_type, converted
from .errors import NotEvaluatedError
from .operation import Meaning, Operation


@dataclass(frozen=True, slots=True)
class Window:
    """A `window` attribute, with an entry for each dimension."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]
    is_reversed: tuple[bool, ...]

    def at(self, position: tuple[int, ...], counts: tuple[int, ...]) -> tuple[slice, ...]:
        """The elements at one position of each of so many windows."""
        steps = zip(position, self.dilation, self.stride, counts, strict=True)
        return tuple(slice(at * gap, at * gap + (count - 1) * step + 1, step) for at, gap, step, count in steps)

    def padded(self, x: Array, value: Array, leading: int = 0) -> Array:
        """The array with the window's padding, behind so many dimensions that it does not have."""
        first = [0] * leading
        return padded(
            x, value, [*first, *self.low], [*first, *self.high], [*first, *(gap - 1 for gap in self.base_dilation)]
        )


def window_of(text: str | None, rank: int) -> Window:
    """The window that a text spells."""
    parts = dict(re.findall(r"(\w+)=([^\s{}]+)", text or ""))

    def each(key: str, default: int) -> tuple[int, ...]:
        return tuple(map(int, parts[key].split("x"))) if key in parts else (default,) * rank

    pads = [tuple(map(int, pad.split("_"))) for pad in parts["pad"].split("x")] if "pad" in parts else [(0, 0)] * rank
    return Window(
        each("size", 1),
        each("stride", 1),
        tuple(low for low, _ in pads),
        tuple(high for _, high in pads),
        each("lhs_dilate", 1),
        each("rhs_dilate", 1),
        tuple(map(bool, each("rhs_reversal", 0))),
    )


@dataclass(frozen=True, slots=True)
class Labels:
    """The dimensions of a convolution's operands and result by letters: `b01f_01io->b01f`."""

    left: str
    right: str
    result: str

    @property
    def spatial(self) -> list[str]:
        """The digits, in order."""
        return sorted(letter for letter in self.left if letter.isdigit())


def labels_of(text: str) -> Labels:
    """The dimensions that a text spells."""
    found = re.fullmatch(r"(\w+)_(\w+)->(\w+)", text)
    if found is None:
        raise NotEvaluatedError(f"dim_labels={text}")
    return Labels(*found.groups())


def convolution(operation: Operation) -> Meaning:
    """`convolution`, as one multiplication of matrices for each position of the window."""
    labels = labels_of(operation.attributes["dim_labels"])
    groups, batch_groups = (operation.number(f"{kind}_group_count", 1) for kind in ("feature", "batch"))
    window = window_of(operation.attributes.get("window"), len(labels.spatial))
    dims, name = operation.dims, operation.dtype
    return lambda x, kernel: converted(convolved(x, kernel, labels, window, dims, groups, batch_groups, name), name)


def convolved(
    x: Array, kernel: Array, labels: Labels, window: Window, dims: tuple[int, ...], groups: int, batch_groups: int,
    name: str,
) -> Array:  # fmt: skip
    """The convolution; `dims` are the sizes of its result."""
    spatial = labels.spatial
    wanted = TYPES[name]
    x = x.transpose([labels.left.index(letter) for letter in ["b", "f", *spatial]])
    kernel = kernel.transpose([labels.right.index(letter) for letter in ["o", "i", *spatial]])
    if wanted.kind in "iu":
        x, kernel = x.astype(wanted), kernel.astype(wanted)
    counts = tuple(dims[labels.result.index(letter)] for letter in spatial)
    x = window.padded(x, np.zeros((), x.dtype), leading=2)
    batch, features = x.shape[:2]
    outputs = kernel.shape[0]
    found = np.zeros((batch // batch_groups, outputs, *counts), np.result_type(x, kernel))
    many, per = int(np.prod(counts, dtype=np.int64)), outputs // (groups * batch_groups)
    for position in positions(*map(range, window.size)):
        turned = zip(position, window.size, window.is_reversed, strict=True)
        weights = kernel[(slice(None), slice(None), *(size - 1 - at if back else at for at, size, back in turned))]
        if not weights.any():
            continue
        part = x[(slice(None), slice(None), *window.at(position, counts))]
        if batch_groups > 1:
            rows = part.reshape(batch_groups, batch // batch_groups, features, many).transpose(0, 1, 3, 2)
        else:
            rows = part.reshape(batch, groups, features // groups, many).transpose(1, 0, 3, 2)
        split = rows.shape[0]
        columns = weights.reshape(split, per, -1).transpose(0, 2, 1)
        summed = (rows.reshape(split, -1, rows.shape[-1]) @ columns).reshape(split, -1, many, per)
        found += summed.transpose(1, 0, 3, 2).reshape(found.shape)
    return found.transpose([["b", "f", *spatial].index(letter) for letter in labels.result])


def reduce_window(operation: Operation) -> Meaning:
    """`reduce-window`, of one array or of several together."""
    count = len(operation.operand_types) // 2
    rank = len(array_type(operation.operand_types[0]).dims)
    window = window_of(operation.attributes.get("window"), rank)
    name, dims = operation.callee(), operation.dims
    simple = operation.simple(name) if count == 1 else None

    def reduced(*operands: Array) -> Value:
        initial = operands[count:]
        data = [window.padded(x, start) for x, start in zip(operands[:count], initial, strict=True)]
        held: Value = [np.broadcast_to(start, dims) for start in initial]
        for position in positions(*map(range, window.size)):
            part = window.at(position, dims)
            if simple is not None:
                held = [combined(simple, held[0], data[0][part])]
                continue
            found = operation.apply(name, *held, *[x[part] for x in data])
            held = list(found) if isinstance(found, tuple) else [found]
        return operation.results(held)

    return reduced


def select_and_scatter(operation: Operation) -> Meaning:
    """`select-and-scatter`: each source element goes to the element that its window selects."""
    window = window_of(operation.attributes.get("window"), len(operation.dims))
    selects, scatters = operation.callee("select"), operation.callee("scatter")
    simple = operation.simple(scatters)

    def scattered(x: Array, source: Array, initial: Array) -> Array:
        numbers = window.padded(np.arange(x.size).reshape(x.shape), np.int64(-1))
        values = window.padded(x, np.zeros((), x.dtype))
        best = chosen = None
        for position in positions(*map(range, window.size)):
            part = window.at(position, source.shape)
            value, number = values[part], numbers[part]
            if best is None or chosen is None:
                best, chosen = value, number
                continue
            keep = (number < 0) | ((chosen >= 0) & np.asarray(operation.apply(selects, best, value)))
            best, chosen = np.where(keep, best, value), np.where(keep, chosen, number)
        found = np.full(x.size, initial, x.dtype)
        assert chosen is not None
        places, parts = chosen.reshape(-1), source.reshape(-1)
        places, parts = places[places >= 0], parts[places >= 0]
        if simple == "add":
            np.add.at(found, places, parts)
        else:
            for place, part in zip(places, parts, strict=True):
                found[place] = operation.apply(scatters, found[place : place + 1], part.reshape(1))[0]
        return found.reshape(x.shape)

    return scattered


MEANINGS: dict[str, Callable[[Operation], Meaning]] = {
    "convolution": convolution,
    "reduce-window": reduce_window,
    "select-and-scatter": select_and_scatter,
}
