"""Specs: the axes of each dimension of an array, as Shardy and JAX spell them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

Dims = tuple[tuple[str, ...], ...]

_DIMENSIONS = re.compile(r"\[(.*?)\]")
_DIMENSION = re.compile(r"\{([^}]*)\}")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')


class Spec(NamedTuple):
    """The axes of each dimension, major to minor, and the dimensions that may take more."""

    dims: Dims
    open: tuple[int, ...] = ()

    def sdy(self, mesh: str) -> str:
        """Return the attribute `#sdy.sharding<…>`."""
        entries = []
        for number, axes in enumerate(self.dims):
            names = [f'"{axis.partition(":")[0]}"{axis[len(axis.partition(":")[0]) :]}' for axis in axes]
            entries.append("{" + ", ".join([*names, *(["?"] if number in self.open else [])]) + "}")
        return f"#sdy.sharding<@{mesh}, [{', '.join(entries)}]>"

    @property
    def is_spelled(self) -> bool:
        """True if JAX can spell it: no parts of axes."""
        return not any(":" in axis for axes in self.dims for axis in axes)

    def __str__(self) -> str:
        entries = []
        for number, axes in enumerate(self.dims):
            free = "P.UNCONSTRAINED" if number in self.open else "None"
            entries.append(free if not axes else repr(axes[0]) if len(axes) == 1 else repr(axes))
        while entries and entries[-1] == "None":
            entries.pop()
        return f"P({', '.join(entries)})"


@lru_cache(maxsize=4096)
def spec_in(text: str) -> Spec:
    """The first spec in the text of an attribute."""
    found = _DIMENSIONS.search(text)
    entries = _DIMENSION.findall(found[1]) if found else []
    dims = tuple(tuple(name + part for name, part in _AXIS.findall(entry)) for entry in entries)
    return Spec(dims, tuple(number for number, entry in enumerate(entries) if "?" in entry))


def replicated(rank: int) -> Spec:
    """The spec of an array that is whole on each device."""
    return Spec(((),) * rank)
