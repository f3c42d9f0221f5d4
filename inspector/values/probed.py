"""Recorded values beside their equations, and those that devices should share and whose bits differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from ..capture.model import Capture
from ..capture.protocol.values import Compared, Difference, Probe
from ..ir.jaxpr import Equation
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.program import Program
from ..ir.types import JaxType
from ..report import Collective, Divergence, ProbedValue, SourcePosition, VariableVariance

Pair = tuple[str, str]
"""A value's name and an axis."""


def divergences(
    capture: Capture, text: JaxprText | None, variance: tuple[VariableVariance, ...]
) -> tuple[Divergence, ...]:
    """Every result that differs along an axis over which it is said to be invariant, in program order."""
    return () if text is None else tuple(_Search(capture, text, variance).found())


class _Search:
    def __init__(self, capture: Capture, text: JaxprText, variance: tuple[VariableVariance, ...]) -> None:
        self.compared = capture.compared
        self.text = text
        self.places = {place.id: place for place in text.equations}
        self.stated = {(value.equation, value.value): value for value in variance}
        self.suspects: list[tuple[Compared, Difference, EquationPlace, VariableVariance]] = []
        for compared in capture.compared:
            place = self.places.get(compared.path[-1]) if compared.path else None
            if place is not None and 0 <= compared.position < len(place.equation.outputs):
                value = self.stated.get((place.id, place.equation.outputs[compared.position].name))
                if value is not None:
                    shared = (d for d in compared.differs if d.axis not in (*value.varying, *value.unreduced))
                    self.suspects += [(compared, difference, place, value) for difference in shared]

    def found(self) -> Iterator[Divergence]:
        differing: set[Pair] = {(value.value, difference.axis) for _, difference, _, value in self.suspects}
        inside = {(path, d.axis) for c, d, _, _ in self.suspects for path in c.path[:-1]}
        for compared, difference, place, value in self.suspects:
            around = [self.places[name].equation for name in compared.path if name in self.places]
            follows = any(self._takes(equation, differing, difference.axis) for equation in around)
            yield Divergence(
                equation=place.id,
                primitive=value.primitive,
                value=value.value,
                type=value.type,
                axis=difference.axis,
                declared="inferred" if value.inferred else "type",
                iteration=difference.iteration,
                devices=difference.devices,
                is_first=not follows and (place.id, difference.axis) not in inside,
                source=value.source,
            )
        yield from self._unspecified()

    def _takes(self, equation: Equation, differing: set[Pair], axis: str) -> bool:
        return any((name, axis) in differing for name in equation.inputs)

    def _unspecified(self) -> Iterator[Divergence]:
        """Values that leave an unchecked shard_map through a spec without an axis along which they differ."""
        for place in self.text.equations:
            mapped = place.equation.shard_map
            if mapped is None or mapped.checked or not place.equation.bodies:
                continue
            body = place.equation.bodies[0][1]
            jaxpr = self.text.program.jaxprs[body]
            made = {o.name: (f"{body}.{i}", n) for i, e in enumerate(jaxpr.equations) for n, o in enumerate(e.outputs)}
            for name, spec in zip(jaxpr.outputs, mapped.outputs, strict=False):
                if name not in made:
                    continue
                equation, number = made[name]
                compared = next((c for c in self.compared if c.path[-1:] == (equation,) and c.position == number), None)
                if compared is None or equation not in self.places:
                    continue
                inner = self.places[equation]
                for difference in compared.differs:
                    if difference.axis in mapped.axes and difference.axis not in {axis for axis, _ in spec}:
                        yield Divergence(
                            equation=equation,
                            primitive=inner.equation.primitive,
                            value=name,
                            type=inner.equation.outputs[number].type,
                            axis=difference.axis,
                            declared="out_specs",
                            iteration=difference.iteration,
                            devices=difference.devices,
                            is_first=True,
                            source=SourcePosition.exact(self.text.stack(inner.equation)),
                        )


def place_probes(
    program: Program, text: JaxprText | None, collectives: Sequence[Collective]
) -> tuple[ProbedValue, ...]:
    """The probes in the order in which they were taken.

    Those of a jaxpr that is not there have no equation. Those of the evaluated program get the coordinates of their
    devices in the program's mesh.
    """
    places = {} if text is None else {place.id: place for place in text.equations}
    compiled = {f"%{each.name}": each for each in collectives if each.stage == "hlo"}
    capture = program.capture
    found = []
    for probe in capture.probes:
        if capture.execution is None and probe.when != "argument" and not probe.axes:
            probe = _in_mesh(probe, program)
        collective = compiled.get(probe.path[0]) if probe.path else None
        found.append(_placed(probe, capture, text, places) if collective is None else _of_collective(probe, collective))
    return tuple(found)


def _in_mesh(probe: Probe, program: Program) -> Probe:
    """A probe of partitions, with the ids of their devices and their coordinates in the first mesh that has them."""
    subject = program.capture.subject
    assignment = () if subject is None else subject.device_assignment
    mesh = next((mesh for mesh in program.meshes if mesh.size == program.partitions), None)
    sizes = () if mesh is None else tuple(size for _, size in mesh.axes)
    order = range(program.partitions) if mesh is None or mesh.device_ids is None else mesh.device_ids
    places = dict(zip(order, product(*map(range, sizes)), strict=False))
    shards = tuple(
        replace(
            shard,
            device=assignment[shard.device] if 0 <= shard.device < len(assignment) else shard.device,
            coordinates=places.get(shard.device, ()),
        )
        for shard in probe.shards
    )
    return replace(probe, axes=() if mesh is None else tuple(name for name, _ in mesh.axes), shards=shards)


def _of_collective(probe: Probe, collective: Collective) -> ProbedValue:
    axes = tuple(str(axis) for axis in collective.axes or ())
    is_one = len(collective.result_types if probe.when == "after" else collective.operand_types) == 1
    name = probe.path[0] if is_one else f"{probe.path[0]}[{probe.position}]"
    return ProbedValue(probe, JaxType(probe.type), name, collective.kind, axes, collective.source, collective)


def _placed(probe: Probe, capture: Capture, text: JaxprText | None, places: dict[str, EquationPlace]) -> ProbedValue:
    type = JaxType(probe.type)
    if not probe.path:
        values = capture.arguments if probe.when == "argument" else capture.outputs
        value = values[probe.position] if 0 <= probe.position < len(values) else None
        name = f"{probe.when} {probe.position}" if value is None else value.path
        type = type if probe.type or value is None else JaxType(value.type)
        return ProbedValue(probe, type, name, primitive="", axes=(), source=SourcePosition())
    place = places.get(probe.path[-1])
    if place is None or text is None:
        return ProbedValue(probe, type, "", primitive="", axes=(), source=SourcePosition())
    names = place.equation.inputs if probe.when == "before" else [output.name for output in place.equation.outputs]
    name = names[probe.position] if 0 <= probe.position < len(names) else ""
    source = SourcePosition.exact(text.stack(place.equation))
    return ProbedValue(probe, type, name, place.equation.primitive, place.equation.axes or (), source)
