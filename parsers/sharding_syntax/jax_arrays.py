"""JAX's spellings of shardings: PartitionSpecs, and the types of arrays as `jax.typeof` prints them.

    P('x', None, ('y', 'z'), unreduced={'w'})          f32[8@x,16@(y,z)]{V:w}          f32[8]{w,x} before JAX 0.8

Source of the spellings: JAX, jax/_src/partition_spec.py and the `str_short` of jax/_src/core.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..grammar import Grammar, several, unquote
from ..record import Record

AxisNames = tuple[str, ...]


class PartitionSpec(Record, frozen=True):
    """The mesh axes of each dimension, major to minor; None for a dimension that propagation may choose.

    Dimensions behind the last entry are along no axes. Along `unreduced` axes a `reduction` is still to be done;
    `reduced` ones say the same of the gradient.
    """

    entries: tuple[AxisNames | None, ...] = ()
    unreduced: AxisNames = ()
    reduced: AxisNames = ()
    reduction: str = "sum"

    def __str__(self) -> str:
        states = (("unreduced", self.unreduced), ("reduced", self.reduced))
        named = [f"{state}={{{', '.join(map(repr, axes))}}}" for state, axes in states if axes]
        if self.reduction != "sum":
            named.append(f"unreduced_kind={self.reduction}")
        return f"P({', '.join([*map(_entry_text, self.entries), *named])})"


class ArrayType(Record, frozen=True):
    """A dtype, sizes (None for one that is not a number), and the explicit or varying mesh axes in the type."""

    dtype: str
    dims: tuple[int | None, ...]
    axes: tuple[AxisNames, ...]
    varying: AxisNames = ()
    unreduced: AxisNames = ()
    reduced: AxisNames = ()

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes; None where one is unknown."""
        known = tuple(dim for dim in self.dims if dim is not None)
        return known if len(known) == len(self.dims) else None


def _entry_text(entry: AxisNames | None) -> str:
    match entry:
        case None:
            return "P.UNCONSTRAINED"
        case ():
            return "None"
        case (axis,):
            return repr(axis)
    return f"({', '.join(map(repr, entry))})"


def _spec(*items: Any) -> PartitionSpec:
    entries: list[AxisNames | None] = []
    states: dict[str, AxisNames] = {}
    reduction = "sum"
    for item in several(*items):
        match item:
            case ("reduction", word):
                reduction = word
            case ("state", state, names):
                states[state] = names
            case ("entry", axes):
                entries.append(axes)
    return PartitionSpec(tuple(entries), states.get("unreduced", ()), states.get("reduced", ()), reduction)


def _names(*names: str | None) -> AxisNames:
    return tuple(name for name in names if name is not None)


def _type(dtype: str, *parts: tuple[int | None, AxisNames] | dict[str, AxisNames] | None) -> ArrayType:
    dims = [part for part in parts if isinstance(part, tuple)]
    variance = next((part for part in parts if isinstance(part, dict)), {})
    return ArrayType(dtype, tuple(size for size, _ in dims), tuple(axes for _, axes in dims), **variance)


def _variance(*states: str) -> dict[str, AxisNames]:
    found = {}
    for state in states:
        letter, _, axes = state.partition(":")
        if letter in _STATES:
            found[_STATES[letter]] = tuple(axis.strip() for axis in axes.strip("()").split(",") if axis.strip())
    bare = tuple(state for state in states if ":" not in state)
    return {"varying": bare} if bare else found


_STATES = {"V": "varying", "U": "unreduced", "R": "reduced"}
_GRAMMAR = Grammar(
    "jax_arrays",
    {
        "spec": _spec,
        "axis": lambda name: ("entry", (name,)),
        "axes": lambda *names: ("entry", _names(*names)),
        "no_axes": lambda: ("entry", ()),
        "unconstrained": lambda: ("entry", None),
        "state": lambda state, *names: ("state", state, _names(*names)),
        "reduction": lambda word: ("reduction", word),
        "type": _type,
        "dim": lambda size, *names: (int(size) if size.isdecimal() else None, _names(*names)),
        "variance": _variance,
        "QUOTED": unquote,
    },
)

parse_spec: Callable[[str], PartitionSpec] = _GRAMMAR.reader("spec")
"""The PartitionSpec that a text spells; raises ParseError."""
parse_array_type: Callable[[str], ArrayType] = _GRAMMAR.reader("type")
"""The type that a text spells; raises ParseError, also for types that are no arrays."""
