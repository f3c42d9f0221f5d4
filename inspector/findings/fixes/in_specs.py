"""Inputs of a shard_map that each device takes its own block of, as edits: a spec that gives it that block."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...ir.program import Program
from ...report import Fix, SourcePosition
from .calls import Call, around, call_at, name_of, nodes_of, own_files, shard_map_calls
from .edits import Placed, axes_text, instead, together, without_calls

ALONG_ONE = {"dynamic_slice_in_dim": 3, "dynamic_index_in_dim": 2}
"""Functions that slice along one dimension, and the position of that among their arguments."""

SLICES = (*ALONG_ONE, "dynamic_slice")
"""The functions that slice, where a user calls them."""


def split_inputs(program: Program, places: Iterable[SourcePosition], axes: tuple[str, ...]) -> tuple[Fix, ...]:
    """The change that splits the inputs of which blocks are sliced at some places, and leaves out these slices.

    Nothing where a slice is of anything but a parameter of the mapped function, or its spec is not written as `P()`.
    """
    places = tuple(dict.fromkeys(places))
    calls = [call_at(program, place, ALONG_ONE) for place in places]
    found = [None if call is None else _input_of(program, call) for call in calls]
    specs = {spec: dim for each in found if each is not None for spec, dim in (each,)}
    if None in found or not found or not axes:
        return ()
    texts = {
        spec: f"{ast.unparse(spec[1].func)}({'None, ' * dim}{axes_text(axes)})"
        for spec, dim in specs.items()
        if isinstance(spec[1], ast.Call)
    }
    edits = together(*(instead(spec, text) for spec, text in texts.items()), without_calls(program, places, ALONG_ONE))
    names = ", ".join(dict.fromkeys(ast.unparse(call[1].args[0]) for call in calls if call is not None))
    title = f"take {names} as {', '.join(dict.fromkeys(texts.values()))} in the in_specs, without the slices"
    return (Fix(title, edits),) if edits else ()


def _input_of(program: Program, call: Call) -> tuple[Placed, int] | None:
    """The spec of the input that a call slices, and the dimension along which it does."""
    file, node = call
    function = next((each for each in around(program, call) if isinstance(each, ast.FunctionDef)), None)
    given = node.args[0] if node.args else None
    if function is None or not isinstance(given, ast.Name):
        return None
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    dim = _number(node, ALONG_ONE[name_of(node.func)])
    if given.id not in parameters or dim is None:
        return None
    for mapped_file, mapped in _maps_of(program, file, function):
        specs = next((each.value for each in mapped.keywords if each.arg == "in_specs"), None)
        entries = specs.elts if isinstance(specs, ast.Tuple) else [specs] * (len(parameters) == 1)
        spec = entries[parameters.index(given.id)] if len(entries) == len(parameters) else None
        if isinstance(spec, ast.Call) and not spec.args and not spec.keywords:
            return (mapped_file, spec), dim
    return None


def _number(call: ast.Call, position: int) -> int | None:
    """The dimension among a call's arguments, 0 where none is given; None where it is no number in the source."""
    given = [*call.args[position : position + 1], *(each.value for each in call.keywords if each.arg == "axis")]
    match given:
        case []:
            return 0
        case [ast.Constant(value=int(value))] if value >= 0:
            return value
    return None


def _maps_of(program: Program, file: str, function: ast.FunctionDef) -> Iterator[Call]:
    """The calls of shard_map that map a function: those that it is given to, or is decorated by."""
    for other in dict.fromkeys((file, *own_files(program))):
        for mapped_file, call in shard_map_calls((other, node) for node in nodes_of(program, other)):
            is_given = any(isinstance(each, ast.Name) and each.id == function.name for each in call.args)
            if is_given or any(each is call for each in function.decorator_list):
                yield mapped_file, call
