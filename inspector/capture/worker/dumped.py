"""The module that XLA's own propagation gives, as its dump has it, with locations and with what ours records of it.

XLA dumps its modules without locations, and asked for the origins of shardings (`shardy-verbose`) it crashes on a
shard_map in a loop. Shardy runs again here on the module that XLA gave it: where that ends as XLA's own did, its record
says how. Shardings are XLA's, whatever ours are: no record is kept of an operation that is sharded otherwise here.

The HLO behind Shardy has locations, and is the same graph but for what hands values on: constraints and reshards, edges
of shard_maps, tuples, and what loops carry unchanged. So both are walked from their results, and what hands on is
skipped. Dead code is never met; copies of an operation share its pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from jaxlib.mlir import ir

from . import modules

RECORDS = re.compile(r"sdy\.\w*(?:origins|origin_name|propagation_edges|sharding_rule)|shardscope\.\w+")
"""Attributes that say how shardings came about."""

OPEN = re.compile(r"(?:, )?\?")
"""An open dimension is as good as closed when propagation is over."""

SHARDINGS = ("sdy.sharding", "sharding", "in_shardings", "out_shardings")

NAMELESS = re.compile(r"^ *(?:ROOT )?%?(?P<name>[\w.-]+) = (?!.*\bop_name=\")", re.MULTILINE)
"""Instructions that XLA made: their own names would pass for those of operations."""

Located = tuple[Any, ir.Location]
"""An operation, or an argument of a block, and its location."""

SETS_LOCATIONS = getattr(ir.Operation.location, "fset", None) is not None
"""True if the location of an operation can be set; in JAX 0.7 it can be set in the text only."""

PARSED = re.compile(r'loc\("-":\d+:\d+\)')
"""The location that the parser gives to what has none."""

SEPARATOR = "@in@"
WRITTEN = re.compile(r'op_name="(?P<name>[^"]*)" source_file="(?P<file>[^"]*)" source_line=(?P<line>\d+)')
LINE = re.compile(rf'("[^"]*?){SEPARATOR}([^"]*){SEPARATOR}(\d+)"')
"""Lines of source, beside names in HLO and in those of locations: the conversion of JAX 0.7 keeps names alone."""


class Dump(NamedTuple):
    """The HLO behind Shardy, and its module in front of propagation and after it."""

    hlo: bytes
    before: bytes
    after: bytes


def with_records(dump: Dump, stablehlo: ir.Module, wish: str, propagate: Callable[[ir.Module, str], None]) -> ir.Module:
    """XLA's module after propagation, with locations, and with the records of a propagation of the one before it."""
    module = ir.Module.parse(dump.after)
    locations = [*_sources(module, dump.hlo.decode()), *_names(module, stablehlo)]
    module = _located(module, locations)
    if wish:
        again = ir.Module.parse(dump.before)
        propagate(again, wish)
        _add_records(module, again)
    return module


def _sources(module: ir.Module, hlo: str) -> Iterator[Located]:
    """The operations with their locations in the HLO; blocks have arguments without any."""
    unknown = ir.Location.unknown()
    nameless = {f'loc("{match["name"]}")' for match in NAMELESS.finditer(hlo)}
    given = hlo if SETS_LOCATIONS else WRITTEN.sub(_with_line, hlo)
    behind = ir.Module.parse(_stablehlo_of(given))  # its operations live as long as it does
    found = pairs(module, behind)
    for operation in modules.find(module.operation, lambda _: True):
        source = found.get(operation)
        yield operation, unknown if source is None or str(source.location) in nameless else source.location
        for block in (block for region in operation.regions for block in region.blocks):
            yield from ((argument, unknown) for argument in block.arguments)


def _located(module: ir.Module, locations: Sequence[Located]) -> ir.Module:
    """The module with these locations, of which the last counts."""
    if SETS_LOCATIONS:
        for value, location in locations:
            if isinstance(value, ir.BlockArgument):
                value.set_location(location)
            else:
                value.location = location
        return module
    # What is in an operation that is printed in one line has the same location: what is known of any counts.
    ordered = sorted(locations, key=lambda each: each[1] != ir.Location.unknown())
    texts = {str(value.location): LINE.sub(r'\1"("\2":\3:0)', str(location)) for value, location in ordered}
    text = module.operation.get_asm(enable_debug_info=True)
    return ir.Module.parse(PARSED.sub(lambda match: texts.get(match[0], match[0]), text))


def _with_line(match: re.Match[str]) -> str:
    """Its line as a part of the name, as the conversion leaves out lines."""
    return f'op_name="{match["name"]}{SEPARATOR}{match["file"]}{SEPARATOR}{match["line"]}"'


def _stablehlo_of(hlo: str) -> bytes:
    from jaxlib import _jax

    try:
        from jaxlib import _hlo as parser
    except ImportError:  # before JAX 0.9 it is part of the other
        parser = _jax
    proto = parser.hlo_module_from_text(hlo).as_serialized_hlo_module_proto()
    converted: bytes = _jax.mlir.hlo_to_stablehlo(proto)
    return converted


def _names(module: ir.Module, stablehlo: ir.Module) -> Iterator[Located]:
    """The arguments with the names that JAX gives them. Results get theirs as attributes."""
    main, named = modules.main_of(module), modules.main_of(stablehlo)
    arguments, known = (list(each.regions[0].blocks[0].arguments) for each in (main, named))
    if len(arguments) == len(known):
        yield from ((argument, other.location) for argument, other in zip(arguments, known, strict=True))
    own, given = (modules.attributes(each, "res_attrs") for each in (main, named))
    if len(given) == len(own):
        names = [{key: each[key] for key in each if key.startswith("jax.")} for each in given]
        modules.set_attributes(main, "res_attrs", [{**each, **name} for each, name in zip(own, names, strict=True)])


def _add_records(module: ir.Module, recorded: ir.Module) -> None:
    found = {**pairs(module, recorded), modules.main_of(module): modules.main_of(recorded)}
    for operation, other in found.items():
        if modules.is_function(operation):
            for side in get_args(modules.Side):
                own, theirs = modules.attributes(operation, side), modules.attributes(other, side)
                if len(own) == len(theirs):
                    joined = [
                        {**each, **_records(more)} if _shardings(each) == _shardings(more) else each
                        for each, more in zip(own, theirs, strict=True)
                    ]
                    modules.set_attributes(operation, side, joined)
            continue
        attributes = modules.attributes_of(other)
        if _shardings(modules.attributes_of(operation)) == _shardings(attributes):
            for name, attribute in _records(attributes).items():
                operation.attributes[name] = attribute


def _shardings(attributes: Mapping[str, Any]) -> list[str]:
    """Return the attributes for shardings; a replicated value needs none."""
    written = (str(attributes.get(name, "")) for name in SHARDINGS)
    return [OPEN.sub("", text) if '"' in text else "" for text in written]


def _records(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: attribute for name, attribute in attributes.items() if RECORDS.fullmatch(name)}


Operation = Any

CONSTRAINTS = frozenset({"sdy.sharding_constraint", "sdy.reshard", "@Sharding", "mhlo.copy"})
ENTRIES = frozenset({"@SPMDFullToShardShape", "@xla.sdy.GlobalToLocalShape"})
EXITS = frozenset({"@SPMDShardToFullShape", "@xla.sdy.LocalToGlobalShape"})
"""Custom calls at the edges of a shard_map, which Shardy has an operation with a region for.

A copy goes before each, and has its location.
"""

MANUAL, LOOP, TUPLE, ELEMENT, RESHAPE = (
    "sdy.manual_computation",
    "stablehlo.while",
    "stablehlo.tuple",
    "stablehlo.get_tuple_element",
    "stablehlo.reshape",
)

CONSTANTS = frozenset({"sdy.constant", "stablehlo.constant"})


def pairs(module: ir.Module, other: ir.Module) -> dict[Operation, Operation]:
    """The operations of a module with those of another one, in which calls are inlined. Constants are in no pair."""
    modules.inline_calls(other)
    found: dict[Operation, Operation] = {}
    waiting = [tuple(_terminator(modules.main_of(each).regions[0]) for each in (module, other))]
    while waiting:
        one, another = waiting.pop()
        for values in zip(_operands(one), _operands(another), strict=False):
            mine, theirs = map(_maker, values)
            for passed, others in zip(mine.passed_on, theirs.passed_on, strict=True):
                # What only one side has was added where the value is used.
                for pair in zip(reversed(passed), reversed(others), strict=False):
                    found.setdefault(*pair)
            if mine.operation is None or theirs.operation is None or mine.operation in found:
                continue
            if _name(mine.operation) != _name(theirs.operation) or _name(mine.operation) in CONSTANTS:
                continue
            found[mine.operation] = theirs.operation
            waiting.append((mine.operation, theirs.operation))
            regions = zip(mine.operation.regions, theirs.operation.regions, strict=False)
            waiting += [tuple(map(_terminator, pair)) for pair in regions if all(len(each.blocks) for each in pair)]
    return found


class _Maker(NamedTuple):
    """The operation that makes a value, None for an argument; and the constraints and shard_maps that hand it on."""

    operation: Operation | None
    passed_on: tuple[list[Operation], list[Operation]]


def _maker(value: Any) -> _Maker:
    constraints: list[Operation] = []
    exits: list[Operation] = []
    is_edge = False
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            holder, number = owner.owner.operation, ir.BlockArgument(value).arg_number
            if holder.name != MANUAL and not _is_carried(holder, number):
                return _Maker(None, (constraints, exits))
            value = holder.operands[number]
            continue
        operation, number = owner.operation, ir.OpResult(value).result_number
        if operation.name == ELEMENT:
            made = operation.operands[0].owner
            inner = made.operation if not isinstance(made, ir.Block) else None
            if inner is None or inner.name != TUPLE:
                return _Maker(inner, (constraints, exits))
            operation, number = inner, ir.IntegerAttr(operation.attributes["index"]).value
        name = _name(operation)
        if name == MANUAL:
            exits.append(operation)
            value = _terminator(operation.regions[0]).operands[number]
            continue
        if name in EXITS:
            exits.append(operation)
        elif name in CONSTRAINTS and not is_edge:
            constraints.append(operation)
        elif name not in ENTRIES | CONSTRAINTS | {TUPLE} and not _hands_on(operation, number):
            return _Maker(operation, (constraints, exits))
        is_edge = name in ENTRIES | EXITS
        value = operation.operands[number]


def _operands(operation: Operation) -> Iterator[Any]:
    """The operands; those of a tuple instead of it."""
    for value in operation.operands:
        owner = value.owner
        is_tuple = not isinstance(owner, ir.Block) and owner.operation.name == TUPLE
        yield from owner.operation.operands if is_tuple else (value,)


def _terminator(region: Any) -> Operation:
    return list(region.blocks[0].operations)[-1].operation


def _name(operation: Operation) -> str:
    """The name, of a custom call that of its target."""
    if operation.name == "stablehlo.custom_call":
        return f"@{ir.StringAttr(operation.attributes['call_target_name']).value}"
    return str(operation.name)


def _hands_on(operation: Operation, number: int) -> bool:
    """Return whether a loop passes on its value of this number unchanged, or a reshape has another layout alone."""
    is_same = operation.name == RESHAPE and operation.operands[0].type == operation.results[0].type
    return is_same or _is_carried(operation, number)


def _is_carried(operation: Operation, number: int) -> bool:
    if operation.name != LOOP:
        return False
    body = operation.regions[1].blocks[0]
    return bool(_terminator(operation.regions[1]).operands[number] == body.arguments[number])
