"""Each recorded value beside its equation."""

from __future__ import annotations

from ..capture.model import Capture
from ..capture.protocol.values import Probe
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..report import ProbedValue, SourcePosition


def place_probes(capture: Capture, text: JaxprText | None) -> tuple[ProbedValue, ...]:
    """The probes in the order in which they were taken; those of a jaxpr that is not there have no equation."""
    places = {} if text is None else {place.id: place for place in text.equations}
    return tuple(_placed(probe, capture, text, places) for probe in capture.probes)


def _placed(probe: Probe, capture: Capture, text: JaxprText | None, places: dict[str, EquationPlace]) -> ProbedValue:
    if not probe.path:
        values = capture.arguments if probe.when == "argument" else capture.outputs
        known = 0 <= probe.position < len(values)
        name = values[probe.position].path if known else f"{probe.when} {probe.position}"
        return ProbedValue(probe, name, "", (), SourcePosition())
    place = places.get(probe.path[-1])
    if place is None or text is None:
        return ProbedValue(probe, "", "", (), SourcePosition())
    names = place.equation.inputs if probe.when == "before" else [output.name for output in place.equation.outputs]
    name = names[probe.position] if 0 <= probe.position < len(names) else ""
    stack = text.stack(place.equation)
    source = SourcePosition(stack, "exact" if stack else "none")
    return ProbedValue(probe, name, place.equation.primitive, place.equation.axes or (), source)
