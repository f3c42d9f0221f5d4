"""What MLIR's own parser says otherwise than we do; `cpp_reader.py` tells how it says it."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from shardscope.parsers.mlir import Function, MlirModule, Operation
from shardscope.parsers.mlir.lists import symbol

from . import printed

FUNCTION = "func.func"
MODULES = (["module"], ["builtin.module"])
TOKEN = "!stablehlo.token"
AXES = re.compile(r'(?<![<=] )(?<=[\[ ])("[^"]*+")(?=[,\]])')
"""Axes of a mesh as the short form of their attribute names them."""
HANDLE = re.compile(r"#(?:stablehlo|mhlo)\.channel_handle<handle = (\d+), type = \d+>")

Description = dict[str, Any]
Place = list[int]
"""Where an operation is, or where a value comes from: as `cpp_reader.py` numbers them."""


def differences(
    module: MlirModule, theirs: Sequence[Description], one_attribute: Callable[[str, str], bool] = str.__eq__
) -> Iterator[str]:
    """One text for each operation that differs, up to the first one that is another one.

    `one_attribute` tells of two texts whether they are the same attribute.
    """
    ours = descriptions(module)
    for number, expected in enumerate(theirs):
        operation, found = next(ours, (None, {"name": "nothing"}))
        if expected["attributes"] is None:
            found.pop("attributes", None)
        else:
            told = comparable(operation, expected["attributes"], found.get("attributes", {}))
            expected = expected | {"attributes": told}
        differing = {
            key: (value, expected[key])
            for key, value in found.items()
            if not _same(key, value, expected[key], one_attribute)
        }
        if differing:
            line = module.source.position(operation.span.start)[0] if operation else 0
            told = "; ".join(f"{key}: {ours!r} {theirs!r}" for key, (ours, theirs) in differing.items())
            yield f"{module.source.name}:{line}: {number}: {expected['name']}: {told}"
        if "name" in differing or "inside" in differing:
            return
    if rest := [found["name"] for _, found in ours]:
        yield f"{module.source.name}: only we have {rest}"


def _same(key: str, ours: Any, theirs: Any, one_attribute: Callable[[str, str], bool]) -> bool:
    """Whether we say the same. Of operations of other dialects, a text need not tell us the types."""
    match ours, theirs:
        case dict(), dict():
            # Groups in the configuration of a custom call are an attribute only to us.
            keys = ours.keys() - ({"replica_groups"} - theirs.keys())
            return keys == theirs.keys() and all(_same("", ours[each], theirs[each], one_attribute) for each in keys)
        case [], [[[]]] if key == "arguments":
            return True
        case list(), list():
            pairs = zip(ours, theirs, strict=False)
            return len(ours) == len(theirs) and all(_same(key, *pair, one_attribute) for pair in pairs)
        case str(), str() if ours != theirs and key != "name":
            is_unknown = not ours and key in ("operand_types", "results")
            return is_unknown or ours == theirs.replace("!mhlo.token", TOKEN) or one_attribute(ours, theirs)
    return bool(ours == theirs)


def descriptions(module: MlirModule) -> Iterator[tuple[Operation | None, Description]]:
    """Our reading, in text order; around a text without `module` MLIR puts one, which is None here."""
    numbers = count()
    if [operation.name for operation in module.body] in MODULES:
        yield from _described(module, module.body[0], None, ChainMap(), numbers)
        return
    yield None, {"name": "builtin.module", "inside": None}
    around = [next(numbers), 0, 0]
    values: ChainMap[str, Place] = ChainMap()
    for operation in module.body:
        yield from _described(module, operation, around, values, numbers)


def _described(
    module: MlirModule, operation: Operation, inside: Place | None, values: ChainMap[str, Place], numbers: Iterator[int]
) -> Iterator[tuple[Operation, Description]]:
    """The operation and all in it; `values` are those that are known where it is."""
    number = next(numbers)
    found = {
        "name": full_name(operation),
        "inside": inside,
        "operands": [values.get(name) for name in operation.operands],
        "operand_types": list(map(str, operation.operand_types)),
        "results": list(map(str, operation.result_types)),
        "arguments": arguments(operation),
        "attributes": attributes(module, operation),
    }
    # What is written without a location gets some place in the text from MLIR.
    if operation.statement.location is not None:
        found["location"] = f"loc({printed.location(operation.location)})"
    yield operation, found
    values |= {name: [number, index] for index, name in enumerate(operation.results)}
    for region_number, region in enumerate(operation.regions):
        inner = values.new_child()
        for block in region.blocks:
            place = [number, region_number, block.number]
            inner |= {argument.name: [*place, index] for index, argument in enumerate(block.arguments)}
            for each in block.operations:
                yield from _described(module, each, place, inner, numbers)


def arguments(operation: Operation) -> list[list[list[str]]]:
    """The types of the arguments of the blocks of its regions. A function that is only declared has an empty one."""
    if operation.name == FUNCTION and not operation.regions:
        return [[]]
    return [
        [[str(argument.type) for argument in block.arguments] for block in region.blocks]
        for region in operation.regions
    ]


def full_name(operation: Operation) -> str:
    """The name with its dialect, which a few operations may be written without."""
    if "." in operation.name:
        return operation.name
    return f"builtin.{operation.name}" if operation.name == "module" else f"func.{operation.name}"


def attributes(module: MlirModule, operation: Operation) -> Description:
    """Those that we give a meaning to, and those that are written with a name and without anything peculiar."""
    text = module.text
    written = {
        key: text.resolved(value)
        for key, value in operation.attributes.items()
        if operation.head.is_quoted or "." in key or key == "callee"
    }
    if "sym_name" in operation.attributes:
        written["sym_name"] = printed.quote(symbol(operation.attributes["sym_name"]))
    if operation.name == FUNCTION and not operation.head.is_quoted:
        function = Function(operation)
        written |= printed.parameters("arg_attrs", function.arguments, text)
        written |= printed.parameters("res_attrs", function.results, text)
    return written | printed.interpreted(module, operation)


def comparable(operation: Operation | None, theirs: Description, ours: Description) -> Description:
    """Their attributes that we must have too; a pretty form has a way of its own to write the others."""
    all_of_them = operation is not None and operation.head.is_quoted
    return {key: _plain(value) for key, value in theirs.items() if key in ours or all_of_them or "." in key}


def _plain(value: Any) -> Any:
    """A list of integers as rows, without what fills up the shorter ones; the number of a channel."""
    if isinstance(value, dict):
        integers, width = value["values"], value["shape"][-1]
        rows = (integers[first : first + width] for first in range(0, len(integers), width or 1))
        return [[number for number in row if number >= 0] for row in rows]
    if value.startswith("#stablehlo.replica_group_mesh_axes<"):
        return AXES.sub(r"#stablehlo.axis_ref<name = \1>", value)
    handle = HANDLE.fullmatch(value)
    return int(handle[1]) if handle else value
