"""Computations of a batch that is split by propagation, as a shard_map of each device's part and one mean over them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ....parsers.sharding_syntax.mesh import AxisRef
from ...ir.array_sharding import ArraySharding
from ...ir.program import Program
from ...report import Edit, Fix, Report, SourcePosition
from ...report.position import own_frames
from .calls import Call, around, binds, calls_on, name_of, of_lax
from .edits import Edits, axes_text, instead
from .gradients import gradient_maker
from .specs import mesh_text, spelled, tree_text

WHOLE = "P()"


def averaged_once(report: Report, place: SourcePosition, axes: Sequence[AxisRef]) -> tuple[Fix, ...]:
    """Each call of a gradient or a scan around a place, outermost first, of each device's part of the batch, averaged.

    What a scan carries and what a gradient is of stay whole. Whether a mean of means is what was computed before is for
    a trial to say.
    """
    names = tuple(dict.fromkeys(axis.name for axis in axes))
    found: dict[str, Fix] = {}
    for frame in reversed(own_frames(place.stack)) if names else ():
        for node in calls_on(report.program, frame.file, frame.line):
            fix = _averaged(report, (frame.file, node), names)
            found |= {} if fix is None else {fix.title: fix}
    return tuple(found.values())


def _averaged(report: Report, call: Call, names: tuple[str, ...]) -> Fix | None:
    program, (file, node), over = report.program, call, axes_text(names)
    unsplit = spelled(program, file, WHOLE)
    maker = gradient_maker(program, call)
    if maker is not None:
        function, whole, spec = maker.args[0], node.args[:1], f"P({over})"
        batch = [*node.args[1:], *(each.value for each in node.keywords)]
    elif name_of(node.func) == "scan" and node.args:
        function, whole, spec = node.args[0], [], f"P(None, {over})"
        batch = [*node.args[2:3], *(each.value for each in node.keywords if each.arg == "xs")]
    else:
        return None
    if not (unsplit and mesh_text(program, call)) or any(
        isinstance(each, ast.Starred | ast.Constant) for each in batch
    ):
        return None
    body = function if maker is None else _local(program, call, function) or function
    specs = dict.fromkeys(map(ast.unparse, whole), unsplit)
    specs |= {
        text: _spec_of(report, file, text, names) or spelled(program, file, spec) for text in map(ast.unparse, batch)
    }
    taken = {name: spec for name in _taken(body) if (spec := _spec_of(report, file, name, names)) not in ("", unsplit)}
    specs |= taken
    split = [text for text, spec in specs.items() if spec != unsplit]
    if not split:
        return None
    edits: Edits = _with_parameters(file, body, taken) if isinstance(body, ast.FunctionDef) and taken else ()
    title = (
        f"call {ast.unparse(node.func)} in a shard_map, of each device's part of {', '.join(split)}, and average once"
    )
    return Fix(title, (*edits, *instead(call, _mapped(report, call, names, specs, taken if edits else ()))))


def _mapped(report: Report, call: Call, names: tuple[str, ...], specs: Mapping[str, str], added: Iterable[str]) -> str:
    """A call in a shard_map over these axes that is given these expressions, some as `added` keyword arguments."""
    program, (file, node), over = report.program, call, axes_text(names)
    own = {text: text if text.isidentifier() else f"part{number}" for number, text in enumerate(specs)}
    given = [own.get(text, text) for text in map(ast.unparse, node.args)]
    given += [f"{each.arg}={own.get(text := ast.unparse(each.value), text)}" for each in node.keywords]
    given += [f"{name}={name}" for name in added]
    mean = f"{of_lax(program, call, 'pmean')}({ast.unparse(node.func)}({', '.join(given)}), {over})"
    others = {name for each in report.meshes for name, _ in each.axes if name not in names}
    manual = f", axis_names={{{', '.join(map(repr, names))}}}" if others else ""
    in_specs = f"({', '.join(specs.values())}{',' if len(specs) == 1 else ''})"
    return (
        f"jax.shard_map(lambda {', '.join(own.values())}: {mean}, mesh={mesh_text(program, call)}, in_specs={in_specs},"
        f" out_specs={spelled(program, file, WHOLE)}{manual}, check_vma=False)({', '.join(specs)})"
    )


def _local(program: Program, call: Call, function: ast.expr) -> ast.FunctionDef | None:
    """The definition of a function beside a call in a function, if it is named there and at the call alone."""
    outer = next((each for each in around(program, call) if isinstance(each, ast.FunctionDef)), None)
    if outer is None or not isinstance(function, ast.Name):
        return None
    named = [each for each in ast.walk(outer) if isinstance(each, ast.Name) and each.id == function.id]
    found = [each for each in outer.body if isinstance(each, ast.FunctionDef) and each.name == function.id]
    return found[0] if len(named) == len(found) == 1 and found[0].args.args else None


def _taken(function: ast.AST) -> dict[str, None]:
    """The names that a function takes from around it."""
    names = dict.fromkeys(each.id for each in ast.walk(function) if isinstance(each, ast.Name))
    return {name: None for name in names if not binds(function, name)}


def _with_parameters(file: str, function: ast.FunctionDef, names: Iterable[str]) -> Edits:
    """A function with further parameters behind its positional ones."""
    last = function.args.args[-1]
    end = last.end_lineno or last.lineno, last.end_col_offset or last.col_offset
    return (Edit(file, *end, *end, "".join(f", {name}" for name in names)),)


def _spec_of(report: Report, file: str, text: str, names: Sequence[str]) -> str:
    """The spec over these axes of what an expression is, a tree where its leaves have several; empty of no argument."""
    specs = {
        value.name.removeprefix(text): "P()" if value.sharding is None else str(_over(value.sharding, names))
        for value in report.shardings
        if value.role == "argument" and (value.name + "[").startswith((f"{text}[", f"{text}."))
    }
    texts = {path: spelled(report.program, file, spec) for path, spec in specs.items()}
    one = set(texts.values())
    return one.pop() if len(one) == 1 else (texts and tree_text(texts)) or ""


def _over(sharding: ArraySharding, names: Sequence[str]) -> ArraySharding:
    dims = [replace(dim, axes=tuple(axis for axis in dim.axes if axis.name in names)) for dim in sharding.closed().dims]
    while dims and not dims[-1].axes:
        dims.pop()
    return replace(sharding, dims=tuple(dims))
