"""A lowered module whose requests can be changed: shardings of arguments, results and constraints.

Specs are the axes of each dimension of an array, as Shardy and JAX spell them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, get_args

from jaxlib.mlir import ir

from .. import modules
from ..provenance import stand_in

_AXES = re.compile(r'"([^"]+)"=(\d+)')
_FRAME = re.compile(r'"([^"]*)"\("([^"]+)":(\d+):(\d+)(?: to (?:(\d+))?:(\d+))?\)')
_NAME = re.compile(r'^loc\("(.*?)"[()]')
_REQUESTED = re.compile(r'(sharding_constraint|reshard)\)?"')
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|^<")


ELEMENTWISE = {
    *("abs", "add", "and", "atan2", "cbrt", "ceil", "cosine", "divide", "exponential", "exponential_minus_one"),
    *("floor", "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "power"),
    *("remainder", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"),
}


class Frame(NamedTuple):
    """A frame of a user's call stack, and the expression that it is at."""

    function: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class Change(NamedTuple):
    """A request with another spec: of an argument or a result by its number, of a constraint, or a new one on the
    result of an operation, or on an argument where it is used. A constraint whose spec is None is left out."""

    kind: Literal["argument", "result", "constraint", "new", "use"]
    number: int
    spec: Spec | None


class Light(NamedTuple):
    """A module without what leaves shardings as they are. `places` are its operations by their numbers in the whole."""

    module: ir.Module
    places: Mapping[int, int]


class Lowered:
    """A module with calls inlined, and what is needed to change its requests in clones."""

    def __init__(self, text: bytes) -> None:
        """The context of MLIR that is entered holds the module."""
        module = ir.Module.parse(text)
        stacks = modules.inline_calls(module, mark=True)
        stand_in(module)
        passes = map(modules.pass_of, ("symbol-dce", "sdy-lift-inlined-meshes", "sdy-constant-or-scalar-splitter"))
        modules.run(module, *passes, *modules.pass_if_there("sdy-manual-axes-cleanup"), modules.pass_of("symbol-dce"))
        self._parts: dict[tuple[Dims, tuple[int, ...] | None], int] = {}
        self.module = module
        self.operations = modules.find(module.operation, lambda _: True)
        self._locations: list[tuple[str, ...]] = []
        for operation in self.operations:
            marked = modules.CALLED in operation.attributes
            around = stacks[ir.IntegerAttr(operation.attributes[modules.CALLED]).value] if marked else ()
            self._locations.append((str(operation.location), *around))
            if marked:  # operations that differ in it would not be merged
                del operation.attributes[modules.CALLED]
        self.meshes = {
            ir.StringAttr(each.attributes["sym_name"]).value: {
                name: int(size) for name, size in _AXES.findall(str(each.attributes["mesh"]))
            }
            for each in modules.find(module.operation, {"sdy.mesh"})
        }
        self.mesh = max(self.meshes, key=lambda name: math.prod(self.meshes[name].values()), default="")
        self.axes = self.meshes.get(self.mesh, {})
        main = modules.main_of(module)
        body = modules.body_of(main)
        self.types = [ir.RankedTensorType(each.type) for each in body.arguments]
        self.result_types = [ir.RankedTensorType(each.type) for each in list(body.operations)[-1].operation.operands]
        self.names = [_name(str(each.location)) for each in body.arguments]
        self._attributes = {side: modules.attributes(main, side) for side in get_args(modules.Side)}
        arguments, results = self._attributes.values()
        self.arguments = [
            spec_in(str(each["sdy.sharding"])) if "sdy.sharding" in each else replicated(type.rank)
            for each, type in zip(arguments, self.types, strict=True)
        ]
        self.results = [spec_in(str(each["sdy.sharding"])) if "sdy.sharding" in each else None for each in results]
        self.result_names = [
            ir.StringAttr(each["jax.result_info"]).value if "jax.result_info" in each else f"result[{number}]"
            for number, each in enumerate(results)
        ]

    @cached_property
    def constraints(self) -> list[int]:
        """The constraints that somebody wrote: with explicit axes, JAX puts others behind each operation."""
        return [
            number
            for number, each in enumerate(self.operations)
            if each.name == "sdy.sharding_constraint" and _REQUESTED.search(str(each.location).split("(callsite")[0])
        ]

    def requested(self, constraint: int) -> Spec:
        """The spec that a constraint asks for."""
        return spec_in(str(self.operations[constraint].attributes["sharding"]))

    def constrained_type(self, constraint: int) -> Any:
        """The type of a constrained value."""
        return ir.RankedTensorType(self.operations[constraint].results[0].type)

    @cached_property
    def is_explicit(self) -> bool:
        """True if the types of values have shardings, which constraints cannot change."""
        written = sum(each.name == "sdy.sharding_constraint" for each in self.operations)
        return bool(written > len(self.constraints) + 3)

    def ways(self, axes: Iterable[str]) -> int:
        """Return into how many parts some axes, or parts of axes, divide an array."""
        return math.prod(int(axis.rpartition(")")[2]) if ":" in axis else self.axes.get(axis, 1) for axis in axes)

    def parts(self, spec: Spec, dims: tuple[int, ...] | None = None) -> int:
        """Return into how many parts a spec divides an array, along some dimensions or all."""
        key = spec.dims, dims
        if key not in self._parts:
            axes = (axis for dim, own in enumerate(spec.dims) if dims is None or dim in dims for axis in own)
            self._parts[key] = self.ways(axes)
        return self._parts[key]

    def fits(self, dims: Dims, shape: Sequence[int]) -> bool:
        """Return whether each dimension can be divided over its axes."""
        return all(int(size) % self.ways(axes) == 0 for axes, size in zip(dims, shape, strict=True))

    def stack(self, number: int) -> tuple[Frame, ...]:
        """The user's frames of an operation, innermost first; of one in a library's function, those of its call."""
        for location in self._locations[number]:
            found = tuple(frame for frame in frames(location) if not _INSTALLED.search(frame.file))
            if found:
                return found
        return ()

    def result_stack(self, number: int) -> tuple[Frame, ...]:
        """The user's frames of the operation that gives a result."""
        owner = self.owner_of(number)
        return () if owner is None else self.stack(owner)

    def owner_of(self, result: int) -> int | None:
        """The operation that gives a result; None where it is an argument."""
        return self.number_of(self._ends[result])

    def number_of(self, value: Any) -> int | None:
        """The operation that gives a value; None where it is an argument."""
        owner = value.owner
        return None if isinstance(owner, ir.Block) else self._numbers[owner.operation]

    @cached_property
    def _ends(self) -> list[Any]:
        return list(list(modules.body_of(modules.main_of(self.module)).operations)[-1].operation.operands)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {operation: number for number, operation in enumerate(self.operations)}

    def is_forward(self, number: int) -> bool:
        """Return whether an operation is not of a backward pass."""
        return not any("transpose(" in location.split("(callsite")[0] for location in self._locations[number])

    def changed(self, changes: Iterable[Change], light: Light | None = None) -> Any:
        """A module with other requests, or the operation of a `light` one: to clone that is faster than to parse it."""
        changes = list(changes)
        clone = ir.Module.parse(self._bytecode) if light is None else light.module.operation.clone()
        main = modules.main_of(clone)
        wanted = any(each.kind in ("constraint", "new") for each in changes)
        operations = modules.find(clone.operation, lambda _: True) if wanted else []
        for side, kind in zip(get_args(modules.Side), ("argument", "result"), strict=True):
            mine = {each.number: each.spec for each in changes if each.kind == kind and each.spec is not None}
            if mine:
                now = self._attributes[side]
                written = [
                    {**each, "sdy.sharding": self._attribute(mine[n])} if n in mine else each
                    for n, each in enumerate(now)
                ]
                modules.set_attributes(main, side, written)
        for each in changes if wanted else ():
            if each.kind not in ("constraint", "new"):
                continue
            operation = operations[each.number if light is None else light.places[each.number]]
            if each.kind == "constraint" and each.spec is None:
                operation.results[0].replace_all_uses_with(operation.operands[0])
                operation.erase()
            elif each.kind == "constraint":
                operation.attributes["sharding"] = self._attribute(each.spec)
            elif each.spec is not None:
                here = list(operation.operation.block.operations)
                place = next(number for number, other in enumerate(here) if other.operation == operation)
                self._constrain(operation.results[0], each.spec, here[place + 1])
        body = modules.body_of(main)
        for each in changes:
            if each.kind == "use" and each.spec is not None:
                self._constrain(body.arguments[each.number], each.spec, body.operations[0])
        return clone

    @cached_property
    def light(self) -> Light:
        """The module without operations on single values and constants: half of the operations of a deep model."""
        clone = self.changed(())
        operations = modules.find(clone.operation, lambda _: True)
        for operation in operations:
            kept = _unchanged(operation)
            if kept is not None:
                operation.results[0].replace_all_uses_with(kept)
        places = set(range(len(operations)))
        for number, operation in reversed(list(enumerate(operations))):
            is_value = operation.name.startswith(("stablehlo.", "sdy.constant")) and len(operation.results)
            if is_value and not len(operation.regions) and not any(list(each.uses) for each in operation.results):
                operation.erase()
                places.remove(number)
        return Light(clone, {number: place for place, number in enumerate(sorted(places))})

    @cached_property
    def _bytecode(self) -> bytes:
        return bytes(self.module.operation.get_asm(binary=True))

    def _attribute(self, spec: Spec | None) -> ir.Attribute:
        return ir.Attribute.parse((spec or Spec(())).sdy(self.mesh))

    def _constrain(self, value: Any, spec: Spec, before: Any) -> None:
        new = ir.Operation.create(
            "sdy.sharding_constraint",
            results=[value.type],
            operands=[value],
            attributes={"sharding": self._attribute(spec)},
            ip=ir.InsertionPoint(before),
        )
        value.replace_all_uses_except(new.results[0], new)


def _unchanged(operation: Any) -> Any:
    """The one operand that an elementwise operation has the type and the sharding of; None of any other one."""
    dialect, _, name = operation.name.partition(".")
    operands = list(operation.operands)
    if dialect != "stablehlo" or name not in ELEMENTWISE or len(operation.results) != 1:
        return None
    arrays = [each for each in operands if not _is_splat(each)]
    is_one = bool(arrays) and all(each == arrays[0] for each in arrays)
    return arrays[0] if is_one and arrays[0].type == operation.results[0].type else None


def _is_splat(value: Any) -> bool:
    """Return whether all elements are one constant, or one number."""
    owner = value.owner
    if isinstance(owner, ir.Block) or not owner.name.endswith(("constant", "broadcast_in_dim")):
        return False
    return bool(owner.name.endswith("constant") or ir.RankedTensorType(owner.operands[0].type).rank == 0)


def frames(location: str) -> tuple[Frame, ...]:
    """The frames in the text of a location, innermost first; only those with both ends of an expression."""
    return tuple(
        Frame(name, file, int(line), int(column), int(end_line or line), int(end_column))
        for name, file, line, column, end_line, end_column in _FRAME.findall(location)
        if end_column
    )


def _name(location: str) -> str:
    found = _NAME.match(location)
    return found[1].replace('\\"', '"') if found else ""


Dims = tuple[tuple[str, ...], ...]

_DIMENSIONS = re.compile(r"\[(.*?)\]")
_DIMENSION = re.compile(r"\{([^}]*)\}")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')


class Spec(NamedTuple):
    """The axes of each dimension, major to minor, and the dimensions that may take more."""

    dims: Dims
    open: tuple[int, ...] = ()

    def sdy(self, mesh: str) -> str:
        """Return the attribute `#sdy.sharding<…>`."""
        entries = []
        for number, axes in enumerate(self.dims):
            names = [f'"{axis.partition(":")[0]}"{axis[len(axis.partition(":")[0]) :]}' for axis in axes]
            entries.append("{" + ", ".join([*names, *(["?"] if number in self.open else [])]) + "}")
        return f"#sdy.sharding<@{mesh}, [{', '.join(entries)}]>"

    @property
    def is_spelled(self) -> bool:
        """True if JAX can spell it: no parts of axes."""
        return not any(":" in axis for axes in self.dims for axis in axes)

    def __str__(self) -> str:
        entries = []
        for number, axes in enumerate(self.dims):
            free = "P.UNCONSTRAINED" if number in self.open else "None"
            entries.append(free if not axes else repr(axes[0]) if len(axes) == 1 else repr(axes))
        while entries and entries[-1] == "None":
            entries.pop()
        return f"P({', '.join(entries)})"


@lru_cache(maxsize=4096)
def spec_in(text: str) -> Spec:
    """The first spec in the text of an attribute."""
    found = _DIMENSIONS.search(text)
    entries = _DIMENSION.findall(found[1]) if found else []
    dims = tuple(tuple(name + part for name, part in _AXIS.findall(entry)) for entry in entries)
    return Spec(dims, tuple(number for number, entry in enumerate(entries) if "?" in entry))


def replicated(rank: int) -> Spec:
    """The spec of an array that is whole on each device."""
    return Spec(((),) * rank)
