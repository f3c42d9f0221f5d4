"""A function with marks at its derivatives, evaluated with the blocks of all devices on one device.

The arguments of the derivatives are moved on all devices at once: along one direction where devices have copies of
them, along a direction each where they have blocks. Collectives are computed among the blocks, as in `reference`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....catalog.spellings import CALLED, CALLS, CONSTRAINTS, rule_of
from ..program import structure
from ..program.structure import opened
from .gradient_flow import Flow, Label, Occurrence, Record
from .gradient_marks import MARK
from .reference import Alone, assemble, split
from .sites import Mapped

MAX_MOVED = 512
"""Arrays that are moved, of all derivatives together."""

MAX_UNROLLED = 64
"""Iterations of a loop that takes derivatives."""

Labels = Sequence[Label | None]
Labelled = tuple[list[Any], list[Label | None]]
"""Values, and what is known of each."""


class Evaluation(Alone):
    """Evaluates a marked jaxpr, with the arrays of its records; the array at a position is moved by that of `step`."""

    def __init__(self, step: Any) -> None:
        super().__init__({}, lambda *_: False, digests=False, iterations=())
        self.flow, self.step = Flow(), step
        self.counts: Counter[int] = Counter()
        self.positions: dict[tuple[Occurrence, int], int] = {}

    def has_sites(self, jaxpr: Any, manual: bool) -> bool:
        """Return whether a jaxpr has marks or collectives: everything else is evaluated as it is."""
        inner = opened(jaxpr)
        key = (id(inner), manual, False)
        if key not in self.busy:
            names = {each.primitive.name for each in structure.equations_of(inner)}
            special = {MARK.name, "shard_map", *CONSTRAINTS}
            self.busy[key] = bool(names & special) or any(rule_of(name) is not None for name in names)
        return self.busy[key]

    def labelled(self, jaxpr: Any, inputs: Sequence[Any], labels: Labels, arrays: dict[str, Any]) -> Labelled:
        """The results and their labels."""
        inner = opened(jaxpr)
        constants = getattr(jaxpr, "consts", ())
        variables = (*inner.constvars, *inner.invars)
        values = dict(zip(variables, (*constants, *inputs), strict=True))
        known = dict(zip(variables, (*[None] * len(constants), *labels), strict=True))

        def read(atom: Any) -> tuple[Any, Label | None]:
            if hasattr(atom, "val"):
                value = atom.val
                is_number = np.ndim(value) == 0 and jnp.issubdtype(jnp.result_type(value), jnp.number)
                return value, Label(constant=float(value)) if is_number and not np.iscomplexobj(value) else None
            return values[atom], known[atom]

        for equation in inner.eqns:
            pairs = [read(atom) for atom in equation.invars]
            results, found = self._evaluated(equation, [v for v, _ in pairs], [each for _, each in pairs], arrays)
            values.update(zip(equation.outvars, results, strict=True))
            known.update(zip(equation.outvars, found, strict=True))
        outputs = [read(atom) for atom in inner.outvars]
        return [value for value, _ in outputs], [label for _, label in outputs]

    def _evaluated(
        self, equation: Any, values: list[Any], labels: list[Label | None], arrays: dict[str, Any]
    ) -> Labelled:
        name, params = equation.primitive.name, equation.params
        if name == MARK.name:
            return self._mark(equation, values[0], labels[0], arrays)
        follows = any(each is not None and each.record >= 0 for each in labels)
        if name == "shard_map":
            return self._mapped(equation, values, labels, arrays)
        called = next((params[key] for key in CALLED if key in params), None)
        if name in CALLS and called is not None and (follows or self._has_marks(called)):
            return self.labelled(called, values, labels, arrays)
        if name == "scan" and (follows or self._has_marks(params["jaxpr"])) and params["length"] <= MAX_UNROLLED:
            return self._unrolled(equation, values, labels, arrays)
        results, _ = self.equation(equation, (), values)
        return results, self.flow.labels(equation, labels, results, arrays)

    def _mark(self, equation: Any, value: Any, label: Label | None, arrays: dict[str, Any]) -> Labelled:
        call, role, leaf = (equation.params[key] for key in ("call", "role", "leaf"))
        if role == "argument":
            if ((call, self.counts[call]), leaf) in self.positions or not self.counts[call]:
                self.counts[call] += 1
            key = ((call, self.counts[call]), leaf)
            position = self.positions.setdefault(key, len(self.positions))
            along = jnp.sin(jax.lax.stop_gradient(value) * 997 + jnp.arange(value.size).reshape(value.shape) * 1.618)
            arrays[f"m{position}"] = along
            return [value + self.step[min(position, MAX_MOVED - 1)] * along.astype(value.dtype)], [label]
        occurrence = (call, self.counts[call])
        layers = [layer for layer in self.layers if isinstance(layer, Mapped)]
        axes = tuple(pair for layer in layers for pair in zip(layer.axes, layer.sizes, strict=True))
        record = Record(role, frozenset([occurrence]), leaf, f"r{len(self.flow.records)}", axes)
        along = arrays.get(f"m{self.positions.get((occurrence, leaf), -1)}") if role == "gradient" else None
        return [value], [self.flow.marked(record, value, along, arrays)]

    def _has_marks(self, jaxpr: Any) -> bool:
        return any(each.primitive is MARK for each in structure.equations_of(jaxpr))

    def _mapped(self, equation: Any, values: list[Any], labels: list[Label | None], arrays: dict[str, Any]) -> Labelled:
        """All devices' blocks at once; records leave with a leading dimension for each axis."""
        params = equation.params
        axes = tuple(structure.manual_axes(equation))
        sizes = {axis: int(params["mesh"].shape[axis]) for axis in axes}
        left: list[Label | None] = []
        constants = [each if each is not None and each.constant is not None else None for each in labels]
        layer = Mapped(axes, tuple(sizes.values()), params["mesh"], structure.is_checked(equation))

        def body(*blocks: Any) -> Any:
            own: dict[str, Any] = {}
            with self.inside(layer):
                results, found = self.labelled(params["jaxpr"], blocks, constants, own)
            left[:] = [each and Label(each.record, each.scale) if each and each.record >= 0 else each for each in found]
            return results, own

        mapped: Any = body
        for axis in reversed(axes):
            mapped = jax.vmap(mapped, in_axes=0, out_axes=0, axis_name=axis, axis_size=sizes[axis])
        blocks = [split(jnp.asarray(v), spec, axes, sizes) for v, spec in zip(values, params["in_specs"], strict=True)]
        results, own = mapped(*blocks)
        arrays |= own
        assembled = [assemble(r, spec, axes) for r, spec in zip(results, params["out_specs"], strict=True)]
        return assembled, left

    def _unrolled(
        self, equation: Any, values: list[Any], labels: list[Label | None], arrays: dict[str, Any]
    ) -> Labelled:
        """One iteration after the other, so that each one's derivatives are those of their own."""
        params = equation.params
        constants, carried = structure.loop(equation) or (0, 0)
        fixed, fixed_labels = values[:constants], labels[:constants]
        carry, carry_labels = values[constants : constants + carried], list(labels[constants : constants + carried])
        slices, rest = values[constants + carried :], []
        order = range(params["length"])
        for number in reversed(order) if params.get("reverse") else order:
            own = [each[number] for each in slices]
            given = [*fixed_labels, *carry_labels, *[None] * len(own)]
            results, found = self.labelled(params["jaxpr"], [*fixed, *carry, *own], given, arrays)
            carry, carry_labels = results[:carried], list(found[:carried])
            rest.append(results[carried:])
        stacked = [jnp.stack(each) for each in zip(*(rest[::-1] if params.get("reverse") else rest), strict=True)]
        return [*carry, *stacked], [*carry_labels, *[None] * len(stacked)]
