"""Gradients in the user's source, with the sharding of the parameters that they are of."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ...ir.array_sharding import ArraySharding
from ...ir.program import Program
from ...report import Edit, Fix, Report
from .calls import Call, around, imports, name_of, nodes_of, own_files
from .edits import Edits
from .specs import mesh_text, spelled, value_of

GRADIENTS = ("grad", "filter_grad")
WITH_VALUES = ("value_and_grad", "filter_value_and_grad")
MAKERS = (*GRADIENTS, *WITH_VALUES)

MAX_SHAPES = 24
"""Shapes that are written out."""

Shape = tuple[int, ...]


def constrained_gradients(report: Report, shardings: Mapping[Shape, ArraySharding]) -> Iterator[Fix]:
    """Yield the constraint of a gradient to these shardings, by shape: so its tree may have lists and attributes."""
    found = [each for file in dict.fromkeys(own_files(report.program)) for each in _gradients(report.program, file)]
    if len(found) != 1 or not 0 < len(shardings) <= MAX_SHAPES:
        return
    file, statement, name = found[0]
    edits = _constraint(report.program, file, statement, name, shardings)
    if edits:
        yield Fix(f"constrain {name}, the gradients, to the shardings of their parameters", edits)


def shardings_by_shape(report: Report) -> dict[Shape, ArraySharding]:
    """The shardings of the arguments by shape; of shapes that have several none."""
    found: dict[Shape, set[ArraySharding]] = {}
    for value in report.shardings:
        shape = value.type.shape
        if value.role == "argument" and shape and value.sharding is not None:
            found.setdefault(shape, set()).add(value.sharding.closed())
    return {shape: next(iter(each)) for shape, each in found.items() if len(each) == 1}


def _gradients(program: Program, file: str) -> Iterator[tuple[str, ast.Assign, str]]:
    """The statements of a file that assign gradients, with the name that these get."""
    for node in nodes_of(program, file):
        match node:
            case ast.Assign(targets=[target], value=ast.Call() as call):
                maker = _maker(program, file, call)
                name = None if maker is None else _gradient_in(target, maker)
                if name is not None:
                    yield file, node, name


def gradient_call(program: Program, file: str, inside: ast.AST) -> tuple[ast.Call, str] | None:
    """The call inside a function that takes gradients, and the name that they get, if any; None if it is not one."""
    calls = [(node, _maker(program, file, node)) for node in ast.walk(inside) if isinstance(node, ast.Call)]
    makers = [(node, maker) for node, maker in calls if maker and name_of(maker.func) in MAKERS]
    if len(makers) != 1 or not makers[0][0].args:
        return None
    call, maker = makers[0]
    match next(around(program, (file, call)), None):
        case ast.Assign(targets=[target]):
            name = _gradient_in(target, maker)
            return None if name is None else (call, name)
    return call, ""


def gradient_maker(program: Program, call: Call) -> ast.Call | None:
    """The call of `jax.grad` or its like that made the function which is called; None where nothing like it did."""
    maker = _maker(program, *call)
    return maker if maker is not None and maker.args and name_of(maker.func) in MAKERS else None


def _maker(program: Program, file: str, call: ast.Call) -> ast.Call | None:
    """Return the call that makes the function that is called: `jax.grad(loss)`."""
    maker = value_of(program, file, call.func.id) if isinstance(call.func, ast.Name) else call.func
    return maker if isinstance(maker, ast.Call) else None


def _gradient_in(target: ast.expr, maker: ast.Call) -> str | None:
    """Return the name of the gradients among the results of what `maker` makes."""
    has_aux = any(each.arg == "has_aux" and ast.unparse(each.value) == "True" for each in maker.keywords)
    match target:
        case ast.Name(id=name) if name_of(maker.func) in GRADIENTS and not has_aux:
            return name
        case ast.Tuple(elts=[ast.Name(id=name), _]) if name_of(maker.func) in GRADIENTS and has_aux:
            return name
        case ast.Tuple(elts=[_, ast.Name(id=name)]) if name_of(maker.func) in WITH_VALUES:
            return name
    return None


def _constraint(
    program: Program, file: str, statement: ast.Assign, name: str, shardings: Mapping[Shape, ArraySharding]
) -> Edits:
    """Return a line after a statement; nothing where the file has no name for what it takes, or the line has more."""
    source, mesh = program.file(file), mesh_text(program, (file, statement))
    specs = {shape: spelled(program, file, str(sharding)) for shape, sharding in shardings.items()}
    named, unsharded = spelled(program, file, "NamedSharding"), spelled(program, file, "P()")
    is_known = source is not None and imports(source, "jax") and mesh and named and unsharded and all(specs.values())
    block = next(around(program, (file, statement)), None)
    line = statement.end_lineno or statement.lineno
    others = [each for each in getattr(block, "body", ()) if each is not statement]
    if not is_known or any(line in (each.lineno, each.end_lineno) for each in others):
        return ()
    table = ", ".join(f"{shape}: {spec}" for shape, spec in specs.items())
    leaf = f"jax.lax.with_sharding_constraint(leaf, {named}({mesh}, {{{table}}}.get(leaf.shape, {unsharded})))"
    text = f"{' ' * statement.col_offset}{name} = jax.tree.map(lambda leaf: {leaf}, {name})\n"
    return (Edit(file, line + 1, 0, line + 1, 0, text),)
