"""Specs in the user's source, written anew: of a constraint, and of the results of a jit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from ...ir.array_sharding import ArraySharding
from ...ir.program import Program
from ...report import Report
from .calls import Body, around, imports, name_of, nodes_of
from .edits import Edits, Placed, instead, together
from .jits import jit_of, with_jit_keyword

SPECS = ("P", "PartitionSpec")
MESHES = ("Mesh", "make_mesh", "AbstractMesh")

_STEP = re.compile(r"\[('[^']*'|\d+)\]")


def with_out_specs(report: Report, specs: Mapping[str, ArraySharding]) -> Edits:
    """Return the jit with these specs of results, by their names, as `result['w']`; nothing where that is not written.

    Where it has one sharding for all results, or none, a tree of them is written out.
    """
    jit = jit_of(report)
    if jit is None:
        return ()
    file, program = jit[0], report.program
    keywords = jit[1].keywords if isinstance(jit[1], ast.Call) else []
    given = next((keyword.value for keyword in keywords if keyword.arg == "out_shardings"), None)
    names = [value.name for value in report.shardings if value.role == "output"]
    parts = {name: None if given is None else _part(given, _path(name)) for name in names}
    if given is not None and all(parts.get(name) is not None for name in specs):
        return together(
            *(with_spec(program, (file, part), specs[n]) for n, part in parts.items() if part and n in specs)
        )
    if given is not None and isinstance(given, ast.Tuple | ast.List | ast.Dict):
        return ()
    rest = "None" if given is None else ast.unparse(given)
    leaves = {_path(name): _named_sharding(program, file, specs[name]) if name in specs else rest for name in names}
    tree = _tree(leaves) if all(leaves.values()) else None
    if tree is None:
        return ()
    return with_jit_keyword(jit, "out_shardings", tree) if given is None else instead((file, given), tree)


def _path(name: str) -> str:
    """Return the path of a result in its tree: `[0]['w']` of `result[0]['w']`."""
    return name.removeprefix("result")


def _tree(leaves: Mapping[str, str]) -> str | None:
    """Return tuples and dictionaries with a text at each path; None where paths have other steps."""
    if list(leaves) == [""]:
        return leaves[""]
    groups: dict[str, dict[str, str]] = {}
    for path, text in leaves.items():
        step = _STEP.match(path)
        if step is None:
            return None
        groups.setdefault(step[1], {})[path[step.end() :]] = text
    parts = {key: _tree(group) for key, group in groups.items()}
    if None in parts.values():
        return None
    if list(parts) == [str(number) for number in range(len(parts))]:
        return f"({', '.join(map(str, parts.values()))}{',' if len(parts) == 1 else ''})"
    return f"{{{', '.join(f'{key}: {part}' for key, part in parts.items())}}}"


def with_spec(program: Program, placed: Placed, spec: ArraySharding) -> Edits:
    """Return another spec in the place of the one of a sharding; of a name only here, where it is used."""
    file, node = placed
    if _depends_on_a_parameter(program, placed):
        return ()
    match node:
        case ast.Call(func=function) if name_of(function) in SPECS:
            return instead(placed, str(spec).replace("P", ast.unparse(function), 1))
        case ast.Call(args=args, keywords=keywords):
            values = [*args, *(keyword.value for keyword in keywords)]
            specs = [
                each
                for each in values
                if isinstance(_assigned(program, file, each), ast.Call) and _is_spec(program, file, each)
            ]
            return with_spec(program, (file, specs[0]), spec) if len(specs) == 1 else ()
        case ast.Name():
            value, text = _assigned(program, file, node), spelled(program, file, str(spec))
            if not isinstance(value, ast.Call) or not text:
                return ()
            if name_of(value.func) in SPECS:
                return instead(placed, text)
            named = spelled(program, file, "NamedSharding")
            return (
                instead(placed, f"{named}({node.id}.mesh, {text})")
                if named and name_of(value.func) == "NamedSharding"
                else ()
            )
    return ()


def _depends_on_a_parameter(program: Program, placed: Placed) -> bool:
    """Return whether an expression is of what the function around it is given: of each call another spec."""
    bodies = [each for each in around(program, placed) if isinstance(each, Body)]
    given = {each.arg for body in bodies for each in ast.walk(body.args) if isinstance(each, ast.arg)}
    return any(isinstance(each, ast.Name) and each.id in given for each in ast.walk(placed[1]))


def _is_spec(program: Program, file: str, node: ast.expr) -> bool:
    value = _assigned(program, file, node)
    return isinstance(value, ast.Call) and name_of(value.func) in SPECS


def _assigned(program: Program, file: str, node: ast.expr) -> ast.expr | None:
    """Return what a name stands for that the file assigns once; other expressions as they are."""
    if not isinstance(node, ast.Name):
        return node
    found = [value for name, value in _assignments(program, file) if name == node.id]
    return found[0] if len(found) == 1 else None


def _assignments(program: Program, file: str) -> Iterator[tuple[str, ast.expr]]:
    for node in nodes_of(program, file):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                yield from ((t.id, value) for t, value in zip(targets, values, strict=True) if isinstance(t, ast.Name))
            case ast.Assign(targets=targets, value=value):
                yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))


def spelled(program: Program, file: str, text: str) -> str:
    """Return a spec, or a class, as the file can name it; empty where it has imported nothing for that."""
    source = program.file(file)
    name = text.partition("(")[0]
    names = SPECS if name == "P" else (name,)
    found = next((each for each in names if source is not None and imports(source, each)), None)
    if found is None and source is not None and imports(source, "jax"):
        found = f"jax.sharding.{names[-1]}"
    return "" if found is None else found + text[len(name) :]


def _named_sharding(program: Program, file: str, spec: ArraySharding) -> str:
    """Return a sharding over the one mesh that a file assigns; empty where there is not just one."""
    mesh = mesh_in(program, file)
    named, written = spelled(program, file, "NamedSharding"), spelled(program, file, str(spec))
    return f"{named}({mesh}, {written})" if mesh and named and written else ""


def mesh_in(program: Program, file: str) -> str:
    """Return the name of the one mesh that a file assigns; empty where there is not just one."""
    calls = [(name, value) for name, value in _assignments(program, file) if isinstance(value, ast.Call)]
    meshes = {name for name, call in calls if name_of(call.func) in MESHES}
    return next(iter(meshes)) if len(meshes) == 1 else ""


def _part(value: ast.expr, path: str) -> ast.expr | None:
    """Return what a pytree that is written out has at a path; None where it is not written out so far."""
    if path and not isinstance(value, ast.Tuple | ast.List | ast.Dict):
        return None  # one for all
    while path:
        found_step = _STEP.match(path)
        step, path = (found_step[1], path[found_step.end() :]) if found_step else ("", "")
        match value:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if step.isdecimal() and int(step) < len(elements):
                value = elements[int(step)]
            case ast.Dict(keys=keys, values=values):
                found = [
                    v
                    for k, v in zip(keys, values, strict=True)
                    if isinstance(k, ast.Constant) and repr(k.value) == step
                ]
                if len(found) != 1:
                    return None
                value = found[0]
            case _:
                return None
    return None if isinstance(value, ast.Tuple | ast.List | ast.Dict) else value


def has_whole_axes(shardings: Iterable[ArraySharding]) -> bool:
    """Return whether code can name all of the axes: no parts of them, and nothing that is left to propagation."""
    return all(
        not dim.is_open and all(axis.sub is None for axis in dim.axes) for each in shardings for dim in each.dims
    )
