"""A function that did not trace, as explainers see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..capture.model import Failure
from ..findings.fixes.calls import imports
from ..ir.jaxpr_text import EquationPlace
from ..ir.program import Program
from ..report import Report, StoryStep
from .story import story_of


@dataclass(frozen=True, slots=True)
class Failed:
    """The capture that ended while tracing, and the report of the same with all checks off, which takes a capture."""

    program: Program
    failure: Failure
    unchecked: Callable[[], Report | None]

    @property
    def said(self) -> str:
        """The exception's own text."""
        return self.failure.said

    def lax(self, file: str) -> str:
        """How a file names `jax.lax`."""
        source = self.program.file(file)
        return "lax." if source is not None and imports(source, "lax") else "jax.lax."

    def story(self, function: str, output: int, axis: str) -> tuple[StoryStep, ...]:
        """How an output of the shard_map of a function came to vary over an axis."""
        report = self.unchecked()
        found = None if report is None else _shard_map_of(report, function)
        if report is None or found is None:
            return ()
        place, outputs = found
        return story_of(report, place, outputs[output], axis) if output < len(outputs) else ()

    def story_at(self, primitives: tuple[str, ...], axis: str) -> tuple[StoryStep, ...]:
        """How what a loop at the line of the failure carries came to vary over an axis."""
        report = self.unchecked()
        text = None if report is None else report.program.jaxpr
        lines = {(frame.file, frame.line) for frame in self.failure.stack}
        if report is None or text is None:
            return ()
        for place in text.equations:
            frames = text.stack(place.equation)
            if place.equation.primitive in primitives and frames and (frames[0].file, frames[0].line) in lines:
                varying = {value.value for value in report.variance if axis in value.varying}
                for _, body in reversed(place.equation.bodies):
                    found = [name for name in text.program.jaxprs[body].outputs if name in varying]
                    if found:
                        return story_of(report, place, found[0], axis)
        return ()


def _shard_map_of(report: Report, function: str) -> tuple[EquationPlace, tuple[str, ...]] | None:
    text = report.program.jaxpr
    if text is None:
        return None
    mapped = [place for place in text.equations if place.equation.shard_map is not None]
    for place in mapped:
        body = text.program.jaxprs[dict(place.equation.bodies).get("jaxpr", 0)]
        names = {frame.function.rpartition(".")[2] for each in body.equations for frame in text.stack(each)[:1]}
        if function in names or len(mapped) == 1:
            return place, body.outputs
    return None
