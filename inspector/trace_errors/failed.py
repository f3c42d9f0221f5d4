"""A function that did not trace, as explainers see it, and how its values came to vary over mesh axes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping

from ...parsers.record import Record
from ...parsers.source import Frame
from ..capture.model import Failure
from ..findings.fixes.calls import imports, name_of, nodes_of
from ..findings.support.jaxpr_flow import Flow, flow_of
from ..ir.jaxpr import literal_in
from ..ir.jaxpr_text import EquationPlace
from ..ir.program import Program
from ..report import Report, SourcePosition, StoryStep, VariableVariance

MAX_SHOWN_STEPS = 8
"""Steps of a story that are told."""

MAX_STEPS = 200
"""Equations through which a value is followed."""


def place_of(failure: Failure) -> SourcePosition:
    """Return the position in the user's code at the failure."""
    frames = (Frame(f.file, f.function, f.line, f.end_line, f.column, f.end_column) for f in failure.stack)
    return SourcePosition(tuple(frames), "exact" if failure.stack else "none")


class Failed(Record, frozen=True):
    """The capture that ended while tracing, and the report of the same with all checks off, which takes a capture.

    `specs` are the shardings of arrays by their names in the user's code, `axes` those of its meshes, as far as known.
    """

    program: Program
    failure: Failure
    unchecked: Callable[[], Report | None]
    specs: Mapping[str, tuple[tuple[str, ...], ...]] = {}
    axes: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """The exception's own text."""
        return self.failure.said

    @property
    def place(self) -> SourcePosition:
        """The position in the user's code at the failure."""
        return place_of(self.failure)

    @property
    def files(self) -> tuple[str, ...]:
        """The script, and the files through which the failure went."""
        script = self.program.script
        names = [*([] if script is None else [script.name]), *(frame.file for frame in self.failure.stack)]
        return tuple(dict.fromkeys(names))

    @property
    def nodes(self) -> Iterator[tuple[str, ast.AST]]:
        """The syntax of these files."""
        return ((file, node) for file in self.files for node in nodes_of(self.program, file))

    def lax(self, file: str) -> str:
        """The file's name for `jax.lax`."""
        source = self.program.file(file)
        return "lax." if source is not None and imports(source, "lax") else "jax.lax."

    def calls(self, names: Collection[str], *, innermost: bool = False) -> Iterator[tuple[str, ast.Call]]:
        """The calls of functions of such names that it failed in, innermost first; or that of the first frame only."""
        for frame in self.place.stack[: 1 if innermost else None]:
            for node in nodes_of(self.program, frame.file):
                match node:
                    case ast.Call(lineno=frame.line, col_offset=frame.column) if name_of(node.func) in names:
                        yield frame.file, node

    def story(self, function: str, output: int, axis: str) -> tuple[StoryStep, ...]:
        """Return how an output of a function's shard_map came to vary over an axis."""
        report = self.unchecked()
        found = None if report is None else _shard_map_of(report, function)
        if report is None or found is None:
            return ()
        place, outputs = found
        return _story(report, place, outputs[output], axis) if output < len(outputs) else ()

    def story_at(self, primitives: tuple[str, ...], axis: str) -> tuple[StoryStep, ...]:
        """Return how the carry of a loop on the failing line came to vary over an axis."""
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
                        return _story(report, place, found[0], axis)
        return ()


def _shard_map_of(report: Report, function: str) -> tuple[EquationPlace, tuple[str, ...]] | None:
    text = report.program.jaxpr
    if text is None:
        return None
    mapped = [place for place in text.equations if place.equation.shard_map is not None]
    for place in mapped:
        body = text.program.jaxprs[dict(place.equation.bodies)["jaxpr"]]
        names = {frame.function.rpartition(".")[2] for each in body.equations for frame in text.stack(each)[:1]}
        if function in names or len(mapped) == 1:
            return place, body.outputs
    return None


def _story(unchecked: Report, place: EquationPlace, name: str, axis: str) -> tuple[StoryStep, ...]:
    """Steps of an axis from its entry to a value in an equation's body, in that order."""
    flow = flow_of(unchecked)
    if flow is None:
        return ()
    values = {each.value: each for each in unchecked.variance}
    steps = list(_back(flow, values, place, name, axis))
    shown = steps
    if len(steps) > MAX_SHOWN_STEPS:
        more = StoryStep(f"… {len(steps) - MAX_SHOWN_STEPS} more steps")
        shown = [*steps[: MAX_SHOWN_STEPS // 2], more, *steps[-MAX_SHOWN_STEPS // 2 :]]
    entry = next((e for e in (values[name].entered if name in values else ()) if e.axis == axis), None)
    first = () if entry is None else (StoryStep(f"{axis} enters by {entry.by}", entry.source),)
    return (*first, *reversed(shown))


def _back(
    flow: Flow, values: Mapping[str, VariableVariance], place: EquationPlace, name: str, axis: str
) -> Iterator[StoryStep]:
    """Backwards along one operand that varies over the axis, out of the bodies of loops and branches."""
    by_name = {output: made for (_, output), (made, _) in flow.made.items()}
    seen: set[str] = set()
    while name not in seen and len(seen) < MAX_STEPS:
        seen.add(name)
        made = by_name.get(name)
        if made is None:
            name = _outside(flow, name, place) or ""
            if not name:
                return
            continue
        equation, value = made.equation, values.get(name)
        if not equation.bodies:
            text = f"{name}:{_typed(value)} = {equation.primitive} {' '.join(equation.inputs)}"
            yield StoryStep(text, flow.source(made))
        varying = [one for one in equation.inputs if one in values and axis in values[one].varying]
        following = varying or [one for one in equation.inputs if literal_in(one) is None and one not in values]
        if not following:
            return
        name = following[0]


def _outside(flow: Flow, name: str, place: EquationPlace) -> str | None:
    """Return the value outside of a body for one of its inputs; none at the boundary of the shard_map itself."""
    for number, jaxpr in enumerate(flow.jaxprs):
        names = [variable.name for variable in jaxpr.inputs]
        callers = flow.callers.get(number, [])
        if name in names and len(callers) == 1 and callers[0].id != place.id:
            offset = len(callers[0].equation.inputs) - len(names)
            position = names.index(name) + max(offset, 0)
            return callers[0].equation.inputs[position] if position < len(callers[0].equation.inputs) else None
    return None


def _typed(value: VariableVariance | None) -> str:
    """The type with the axes over which the value varies, as JAX prints it where the check is on."""
    if value is None:
        return ""
    axes = ",".join(value.varying)
    return f"{value.type}{{V:{axes if len(value.varying) < 2 else f'({axes})'}}}"
