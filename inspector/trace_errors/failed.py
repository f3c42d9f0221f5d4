"""A function that did not trace, as explainers see it, its syntax, and how its values came to vary over mesh axes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from ...parsers.record import Record
from ..capture.model import Failure
from ..findings.equations import Flow, flow_of
from ..findings.fixes.calls import imports, name_of, nodes_of
from ..findings.fixes.edits import Placed
from ..ir.jaxpr import literal_in
from ..ir.jaxpr_text import EquationPlace
from ..ir.program import Program
from ..report import Report, SourcePosition, StoryStep, VariableVariance
from ..report.position import place_of

MAX_SHOWN_STEPS = 8
"""Steps of a story that are told."""

MAX_STEPS = 200
"""Equations through which a value is followed."""


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


Function = ast.FunctionDef | ast.Lambda

PATH = r"(?:\[(?:\d+|'[^']*')\]|\.\w+)*"
"""Paths of results, as JAX's messages have them: `[1]['loss']`, `.loss`."""

_STEP = re.compile(r"\[(\d+)\]|(?:\['([^']*)'\]|\.(\w+))")


def functions_named(failed: Failed, name: str) -> Iterator[tuple[str, Function]]:
    """The functions of that name; for `<lambda>` all lambdas."""
    for file in failed.files:
        for node in nodes_of(failed.program, file):
            match node:
                case ast.FunctionDef(name=found) if found == name:
                    yield file, node
                case ast.Lambda() if name == "<lambda>":
                    yield file, node


def results_of(file: str, function: Function, path: str) -> Iterator[Placed]:
    """Return what a function returns, at each return: the full value, or the part at a path as in `[1][0]`."""
    if isinstance(function, ast.Lambda):
        found: list[ast.expr] = [function.body]
    else:
        found = [node.value for node in _own(function) if isinstance(node, ast.Return) and node.value is not None]
    for value in found:
        if path and isinstance(value, ast.Name) and not isinstance(function, ast.Lambda):
            assigned = [node for node in _own(function) if isinstance(node, ast.Assign)]
            named = [node.value for node in assigned if value.id in map(ast.unparse, node.targets)]
            value = named[0] if len(named) == 1 else value
        part = element(value, path)
        if part is not None:
            yield file, part


def element(value: ast.expr, path: str) -> ast.expr | None:
    """An element of a tuple, dictionary or class that is written out; None where it is not."""
    for number, key, attribute in _STEP.findall(path):
        found: list[ast.expr] = []
        match value:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if number:
                found = parts[int(number) :]
            case ast.Dict(keys=keys, values=parts):
                pairs = zip(keys, parts, strict=True)
                found = [part for name, part in pairs if isinstance(name, ast.Constant) and name.value == key]
            case ast.Call(keywords=keywords):
                found = [keyword.value for keyword in keywords if keyword.arg == (key or attribute)]
        if not found:
            return None
        value = found[0]
    return value


def prefix_of(call: ast.Call) -> str:
    """Return the user's prefix for functions of `jax.lax`: `lax.`, `jax.lax.`; the full name if it is not clear."""
    return f"{ast.unparse(call.func.value)}." if isinstance(call.func, ast.Attribute) else "jax.lax."


def maps(call: ast.Call, function: Function) -> bool:
    """Return whether a call of shard_map maps a function: it decorates it, or has it as an argument."""
    return call in getattr(function, "decorator_list", ()) or any(
        argument is function or (isinstance(argument, ast.Name) and argument.id == getattr(function, "name", None))
        for argument in call.args
    )


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
