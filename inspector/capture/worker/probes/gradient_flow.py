"""Gradients, and the values that they are of, on their way through a shard_map: summed, scaled, and added up.

A value is followed as long as it is a multiple of the gradient, or its sum over devices or over the iterations of a
loop. Beside a gradient goes the direction along which its argument is moved, in the blocks that the gradient is in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from ....catalog.spellings import rule_of
from ...protocol.trace import Place
from ..program import structure
from .equations import bind
from .several_axes import all_gather

STRUCTURAL = frozenset(
    {"convert_element_type", "reshape", "squeeze", "expand_dims", "transpose", "copy", "copy_p", "reduce_precision"}
    | {"pvary", "pcast", "optimization_barrier", "sharding_constraint", "pbroadcast", "broadcast_in_dim"}
)
"""Primitives whose results are their operands, elsewhere or in other types."""

SUMS = frozenset(("psum", "psum_invariant", "psum2"))
GATHERS = frozenset(("all_gather", "all_gather_invariant", "reduce_scatter"))

Occurrence = tuple[int, int]
"""A derivative, by its number, and how often it was taken before."""


class Scale(NamedTuple):
    """A multiple of a value; with the last constant by which it is multiplied, rather than divided, and its line."""

    value: float = 1.0
    factor: float | None = None
    at: Place | None = None


@dataclass(slots=True)
class Record:
    """A value as it was marked, or as a collective or an addition gave it: `slot` names its array among the results.

    `axes` are those of the shard_map with their sizes, `lines` and `reduced` the lines and axes of the collectives that
    it came through. `scales` are its multiples by constants since; `is_multiple` says that it has others than a mean's,
    `is_scaled` that it is divided by data, `is_lost` that it goes through a collective that is not followed.
    """

    role: str
    of: frozenset[Occurrence]
    leaf: int
    slot: str
    axes: tuple[tuple[str, int], ...]
    parents: tuple[int, ...] = ()
    scales: list[Scale] = field(default_factory=lambda: [Scale()])
    lines: tuple[Place, ...] = ()
    reduced: frozenset[str] = frozenset()
    is_multiple: bool = False
    is_scaled: bool = False
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """Knowledge of a value: a record and the multiple of it that it is, or a constant."""

    record: int = -1
    scale: float = 1.0
    direction: Any = None
    constant: float | None = None
    made_at: Place | None = None


class Flow:
    """The records of one evaluation, and the arrays that they name."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def labels(
        self, equation: Any, inputs: Sequence[Label | None], results: Sequence[Any], arrays: dict[str, Any]
    ) -> list[Label | None]:
        """The labels of the results of an equation."""
        name = equation.primitive.name
        followed = [each for each in inputs if each is not None and each.record >= 0]
        if not followed:
            return self._constants(name, inputs, len(results))
        if name in STRUCTURAL and len(inputs) == len(results):
            return [self._moved(equation, *pair) for pair in zip(inputs, results, strict=True)]
        if name in SUMS or name in GATHERS:
            if equation.params.get("axis_index_groups") is None:
                pairs = zip(inputs, results, strict=True)
                return [self._reduced(equation, label, result, arrays) for label, result in pairs]
        elif name in ("mul", "div"):
            return [self._scaled(name, equation, inputs)]
        elif name in ("add", "add_any", "select_n"):
            return [self._added(name, inputs, results[0], arrays)]
        rule = rule_of(name)
        for each in followed if rule is not None and not rule.is_cast else ():
            self.records[each.record].is_lost = True
        return [None] * len(results)

    def marked(self, record: Record, array: Any, direction: Any, arrays: dict[str, Any]) -> Label:
        """The label of a value that begins, or of one that a collective or an addition gives."""
        self.records.append(record)
        arrays[record.slot] = array
        if direction is not None:
            arrays[f"{record.slot} along"] = direction
        return Label(len(self.records) - 1, direction=direction)

    def last(self) -> list[Record]:
        """The records of which no others are made."""
        parents = {parent for each in self.records for parent in each.parents}
        return [each for number, each in enumerate(self.records) if number not in parents]

    def _constants(self, name: str, inputs: Sequence[Label | None], count: int) -> list[Label | None]:
        known = [each.constant for each in inputs if each is not None and each.constant is not None]
        if len(known) != len(inputs) or not known or count != 1:
            return [None] * count
        if name in STRUCTURAL:
            return [Label(constant=known[0])]
        if name in ("mul", "div") and (name == "mul" or known[1]):
            return [Label(constant=known[0] * known[1] if name == "mul" else known[0] / known[1])]
        return [None]

    def _moved(self, equation: Any, label: Label | None, result: Any) -> Label | None:
        if label is None or label.record < 0:
            return label
        direction = label.direction
        if direction is None and result.ndim:
            return None
        if direction is not None:
            if math.prod(result.shape) != math.prod(direction.shape):
                return None
            if equation.primitive.name in ("reshape", "squeeze", "expand_dims", "transpose", "broadcast_in_dim"):
                (direction,) = bind(equation, [direction], in_context=False)
        return replace(label, direction=direction)

    def _reduced(self, equation: Any, label: Label | None, result: Any, arrays: dict[str, Any]) -> Label | None:
        if label is None or label.record < 0:
            return label if equation.primitive.name in GATHERS else None
        before, direction = self.records[label.record], label.direction
        if direction is not None and equation.primitive.name in GATHERS:
            direction = _own_block(equation, direction)
        line = structure.line_of(equation)
        lines = (*before.lines, *([line] if line else ()))
        names = equation.params.get("axes", equation.params.get("axis_name"))
        reduced = before.reduced | {str(each) for each in (names if isinstance(names, tuple | list) else (names,))}
        slot, parents = f"r{len(self.records)}", (label.record,)
        record = replace(before, slot=slot, parents=parents, scales=[Scale()], lines=lines, reduced=reduced)
        return replace(self.marked(record, result, direction, arrays), made_at=line)

    def _scaled(self, name: str, equation: Any, inputs: Sequence[Label | None]) -> Label | None:
        label, other = inputs
        if name == "mul" and (label is None or label.record < 0):
            label, other = other, label
        if label is None or label.record < 0:
            return None
        record = self.records[label.record]
        if other is None or not other.constant:
            record.is_scaled |= name == "div" or record.role == "value"
            return None
        scale = label.scale * (other.constant if name == "mul" else 1 / other.constant)
        # A mean is a sum, divided at once.
        line = structure.line_of(equation)
        is_mean = name == "div" and label.made_at is not None and label.made_at == line
        record.is_multiple |= not is_mean
        last = record.scales[-1]
        found = Scale(scale, other.constant, line) if name == "mul" else Scale(scale, last.factor, last.at)
        record.scales[:] = [found] if is_mean or record.role == "value" else [*record.scales, found]
        return replace(label, scale=scale, made_at=None)

    def _added(self, name: str, inputs: Sequence[Label | None], result: Any, arrays: dict[str, Any]) -> Label | None:
        """Label of a sum: of a value and zeros, or of the values of several iterations."""
        others = list(inputs[1:] if name == "select_n" else inputs)
        zeros = [each for each in others if each is not None and each.constant == 0]
        followed = [each for each in others if each is not None and each.record >= 0]
        if len(zeros) + len(followed) != len(others):
            return None
        if len(followed) == 1:
            return followed[0]
        records = [self.records[each.record] for each in followed]
        alike = {(each.role, each.leaf, len(each.lines)) for each in records}
        calls = {call for each in records for call, _ in each.of}
        if name == "select_n" or len(alike) != 1 or len(calls) != 1 or len({each.of for each in records}) == 1:
            return None
        record = replace(
            records[0],
            of=frozenset().union(*(each.of for each in records)),
            slot=f"r{len(self.records)}",
            parents=tuple(each.record for each in followed),
            scales=[Scale()],
        )
        return self.marked(record, result, followed[0].direction, arrays)


def _own_block(equation: Any, direction: Any) -> Any:
    """The block of a direction that a device has of a gradient after a reduce-scatter, or all after a gather."""
    params = equation.params
    if equation.primitive.name != "reduce_scatter":
        return all_gather(direction, params["axis_name"], params["all_gather_dimension"], tiled=params["tiled"])
    dimension, names = params["scatter_dimension"], params["axis_name"]
    size = direction.shape[dimension] // params["axis_size"]
    block = lax.dynamic_slice_in_dim(direction, lax.axis_index(names) * size, size, dimension)
    return block if params["tiled"] else jnp.squeeze(block, dimension)
