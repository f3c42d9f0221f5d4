"""Work on the elements of a batch, so that no device needs what is on others: by `vmap`, or in a `shard_map`."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from ....parsers.sharding_syntax.mesh import AxisRef
from ...catalog.spellings import ROW_LOOPS
from ...ir.derived import derived
from ...ir.program import Program, SourceFile
from ...report import Edit, Fix, SourcePosition
from ...report.position import own_frames
from .calls import around, call_at, imports, name_of, nodes_of, own_files, tree_of
from .edits import Edits, axes_text, instead, wrapped
from .specs import mesh_text, spelled, targets_of

WRITTEN = (ast.Slice, ast.Constant, ast.UnaryOp)
"""Indices that stay where they are: no arrays."""

NUMBERING = ("arange", "iota", "broadcasted_iota")


def split_loops(program: Program, place: SourcePosition, count: int) -> Iterator[Fix]:
    """A loop over rows as a vmap: a lax.map of all rows, and a lax.scan that adds them up of so many parts.

    The sums are added after the loops, which is right where they begin with zeros: values are compared.
    """
    call = call_at(program, place, ROW_LOOPS)
    source = None if call is None else program.file(call[0])
    if call is None or source is None or not imports(source, "jax"):
        return
    line, statement = call[1].lineno, next(around(program, call), None)
    match call[1]:
        case ast.Call(func=ast.Attribute(attr="map"), args=[function, rows], keywords=[]):
            text = f"jax.vmap({ast.unparse(function)})({ast.unparse(rows)})"
            yield Fix(f"map over all rows at once, each device over its own (line {line})", instead(call, text))
        case ast.Call(func=ast.Attribute(attr="scan"), args=[_, _, rows], keywords=[]) if isinstance(
            statement, ast.Assign
        ) and isinstance(statement.targets[0], ast.Tuple):
            own = ast.unparse(ast.Call(call[1].func, [*call[1].args[:2], ast.Name("own")], []))
            parts = f"jax.tree.map(lambda leaf: leaf.reshape({count}, -1, *leaf.shape[1:]), {ast.unparse(rows)})"
            before = f"sums, others = jax.vmap(lambda own: {own})({parts})\n{' ' * statement.col_offset}"
            summed = "jax.tree.map(lambda leaf: leaf.sum(0), sums)"
            text = f"{summed}, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), others)"
            at = (statement.lineno, statement.col_offset)
            edits = (Edit(call[0], *at, *at, before), *instead(call, text))
            yield Fix(f"add up each device's own rows, and these {count} sums after that (line {line})", edits)


def vmapped_lookups(program: Program, place: SourcePosition) -> Iterator[Edits]:
    """`x[rows, i]` as a lookup in each row, and `x.at[rows, i].set(u)` as an update of each; `rows` is an `arange`."""
    for frame in own_frames(place.stack):
        source = program.file(frame.file)
        for node, (rows, *indices) in () if source is None else _lookups(source).get(frame.line, ()):
            if _is_numbered(program, frame.file, rows):
                yield _vmapped(program, frame.file, node, indices)


@derived
def _lookups(source: SourceFile) -> dict[int, list[tuple[ast.Subscript, list[ast.expr]]]]:
    """By line, what is indexed by several, with these; nothing in a file that has no name for jax."""
    found: dict[int, list[tuple[ast.Subscript, list[ast.expr]]]] = {}
    for node in ast.walk(tree_of(source)) if imports(source, "jax") else ():
        match node:
            case ast.Subscript(slice=ast.Tuple(elts=[_, _, *_] as indices)):
                found.setdefault(node.lineno, []).append((node, indices))
    return found


def _is_numbered(program: Program, file: str, index: ast.expr) -> bool:
    """Return whether an index, as `rows[:, None]`, is of a function that numbers, or a name of what it gives."""
    match index:
        case ast.Subscript(value=inner) | ast.Call(func=ast.Attribute(value=inner, attr="reshape")):
            return _is_numbered(program, file, inner)
        case ast.Call(func=function):
            return name_of(function) in NUMBERING
        case ast.Name(id=name):
            given = [node for node in nodes_of(program, file) if any(each.id == name for each in targets_of(node))]
            values = [node.value for node in given if isinstance(node, ast.Assign)]
            return any(not isinstance(value, ast.Name) and _is_numbered(program, file, value) for value in values)
    return False


def _vmapped(program: Program, file: str, node: ast.Subscript, indices: Sequence[ast.expr]) -> Edits:
    given: list[ast.expr] = []

    def inside(each: ast.expr) -> str:
        if isinstance(each, WRITTEN):
            return ast.unparse(each)
        given.append(each)
        return f"a{len(given)}"

    index = ", ".join(map(inside, indices))
    whole: ast.expr = node
    match node.value, list(islice(around(program, (file, node)), 2)):
        case ast.Attribute(attr="at", value=array), [ast.Attribute(attr=method), ast.Call(args=[update]) as call]:
            body = f"a.at[{index}].{method}({', '.join([inside(update), *map(ast.unparse, call.keywords)])})"
            whole = call
        case ast.Attribute(attr="at"), _:
            return ()
        case array, _:
            body = f"a[{index}]"
    names = ", ".join(["a", *(f"a{number}" for number in range(1, len(given) + 1))])
    return instead((file, whole), f"jax.vmap(lambda {names}: {body})({', '.join(map(ast.unparse, [array, *given]))})")


def in_shard_maps(program: Program, axes: Sequence[AxisRef]) -> Iterator[Edits]:
    """Each `vmap(f)` of the user's in a shard_map over the axes of its batch.

    In one that is not checked, too: a loop in it may carry constants, which do not vary over the axes.
    """
    names = tuple(dict.fromkeys(axis.name for axis in axes))
    for file in () if not names else own_files(program):
        for node in nodes_of(program, file):
            match node:
                case ast.FunctionDef(decorator_list=decorators):
                    found = next((each for each in decorators if _is_vmap(each)), None)
                    if found is not None:
                        yield from _mapped(program, file, found, names, node)
                case ast.Call(func=function, args=[_, *_]) if name_of(function) == "vmap":
                    yield from _mapped(program, file, node, names)


def in_shard_map(program: Program, place: SourcePosition, functions: Collection[str], spec: str) -> Edits:
    """The call of one of these functions at a place in a shard_map, of which argument and result have the same spec."""
    call = call_at(program, place, functions)
    mesh, split = ("", "") if call is None else (mesh_text(program, call), spelled(program, call[0], spec))
    if call is None or not (mesh and split and call[1].args):
        return ()
    first, *others = map(ast.unparse, (*call[1].args, *call[1].keywords))
    own = f"lambda part: {ast.unparse(call[1].func)}({', '.join(['part', *others])})"
    return instead(call, f"jax.shard_map({own}, mesh={mesh}, in_specs={split}, out_specs={split})({first})")


def _is_vmap(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=function, args=[first]) if name_of(function) == "partial":
            return name_of(first) == "vmap"
    return name_of(node) == "vmap"


def _mapped(
    program: Program, file: str, node: ast.expr, names: tuple[str, ...], decorated: ast.FunctionDef | None = None
) -> Iterator[Edits]:
    mesh = mesh_text(program, (file, node))
    split, whole = (spelled(program, file, f"P({axes})") for axes in (axes_text(names), ""))
    keywords = {each.arg: each.value for each in node.keywords} if isinstance(node, ast.Call) else {}
    specs = _in_specs(keywords.get("in_axes"), split, whole)
    if not (mesh and split and specs) or "out_axes" in keywords:
        return
    for unchecked in ("", ", check_vma=False"):
        text = f"mesh={mesh}, in_specs={specs}, out_specs={split}{unchecked}"
        if decorated is None:
            yield wrapped((file, node), "jax.shard_map(", f", {text})")
        elif later := _assigned_below(program, file, mesh, decorated):
            name = decorated.name
            yield (Edit(file, later, 0, later, 0, f"{name} = jax.jit(jax.shard_map({name}, {text}))\n"),)
        else:
            start = (node.lineno, node.col_offset)
            yield (Edit(file, *start, *start, f"jax.shard_map({text})\n{' ' * (node.col_offset - 1)}@"),)


def _assigned_below(program: Program, file: str, name: str, function: ast.FunctionDef) -> int:
    """The line behind the module's statement that assigns a name after a function of the module; 0 for none."""
    source = program.file(file)
    body = [] if source is None else tree_of(source).body
    behind = body[body.index(function) :] if function in body else []
    own = [each for each in behind if any(target.id == name for target in targets_of(each))]
    return (own[0].end_lineno or own[0].lineno) + 1 if own else 0


def _in_specs(in_axes: ast.expr | None, split: str, whole: str) -> str:
    """The specs of arguments that are mapped in their first dimension or not at all; empty where others are."""
    match in_axes:
        case None | ast.Constant(value=0):
            return split
        case ast.Tuple(elts=elements) if all(
            isinstance(each, ast.Constant) and each.value in (0, None) for each in elements
        ):
            parts = [split if ast.unparse(each) == "0" else whole for each in elements]
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return ""
