"""Variance inferred: which values may differ between the devices along an axis, by following the equations.

Three readings of the same program. By `types` it is what JAX's type system says with its check on. By `values` it is
what may really differ: gathered values are equal whatever their type, casts change nothing, and a branch or a loop
bound that varies makes what comes out of it vary. By `blocks` it is what differs unless blocks are equal by chance:
values that were sent from device to device, and those of kernels and foreign calls, are `exchanged`. All start from
`in_specs` and `axis_index`, and rest on the table of collectives; whatever is not in it is taken to give equal results
for equal operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import field

from ...parsers.record import Record
from ..catalog.collective import State
from ..catalog.custom_calls import HOST_PRIMITIVES
from ..catalog.spellings import CALLED, is_kernel, rule_of
from ..ir.derived import derived
from ..ir.jaxpr import Equation, JaxprProgram, ShardMap
from ..ir.jaxpr_text import JaxprText
from ..ir.types import ArrayType
from .held import SHARED, Held, Value, join, same_axes, value_of, without

Reading = Literal["types", "values", "blocks"]

FOREIGN = frozenset({"ffi_call", "custom_partitioning", "custom_call", *HOST_PRIMITIVES})
"""Operations that may do anything."""

MAX_DEPTH = 100
"""Bodies nested deeper are taken as opaque: only a crafted program has them."""

MAX_CALLS = 100_000
"""Calls that are followed; of a crafted program the rest is opaque."""


class Inferred(Record, frozen=True):
    """Operands and results of each equation inside a shard_map, by `jaxpr.index`; each joined over all calls of it.

    `unchecked` are the equations in a shard_map with its check off.
    """

    operands: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    results: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    unchecked: set[str] = field(default_factory=set)


@derived
def infer(text: JaxprText, reading: Reading) -> Inferred:
    """Variance of everything inside the shard_maps of a program."""
    walker = _Walker(text.program, reading)
    if text.program.jaxprs:
        walker.call(0, [SHARED] * len(text.program.jaxprs[0].inputs), None)
    return walker.found


class _Residual(Record, frozen=True):
    """A result of a shard_map as it is inside, and how it is laid out: its mesh, its spec and the type of a block."""

    laid_out: tuple[str, tuple[tuple[str, State], ...], ArrayType]
    value: Value


class _Walker:
    """`where` is the innermost enclosing shard_map, None outside of all."""

    def __init__(self, program: JaxprProgram, reading: Reading) -> None:
        self.program = program
        self.by_values = reading != "types"
        self.by_blocks = reading == "blocks"
        self.found = Inferred()
        self.known: dict[tuple[int, tuple[Value, ...], ShardMap | None], list[Value]] = {}
        self.depth = 0

    def call(self, index: int, inputs: Sequence[Value], where: ShardMap | None) -> list[Value]:
        """The results of a jaxpr for given inputs; each call with the same ones is followed once."""
        key = (index, tuple(inputs), where)
        if key not in self.known:
            self.known[key] = [SHARED] * len(self.program.jaxprs[index].outputs)
            self.depth += 1
            self.known[key] = self._body(index, inputs, where)
            self.depth -= 1
        return self.known[key]

    def _body(self, index: int, inputs: Sequence[Value], where: ShardMap | None) -> list[Value]:
        jaxpr = self.program.jaxprs[index]
        environment = {variable.name: value for variable, value in zip(jaxpr.inputs, inputs, strict=False)}
        residuals: dict[str, _Residual] = {}
        for position, equation in enumerate(jaxpr.equations):
            place = f"{index}.{position}"
            operands = [environment.get(name, SHARED) for name in equation.inputs]
            results = self._equation(equation, place, operands, residuals, where)
            results = [*results, *[SHARED] * len(equation.outputs)][: len(equation.outputs)]
            environment |= {variable.name: value for variable, value in zip(equation.outputs, results, strict=True)}
            if where is not None:
                self._note(place, operands, results, where)
        return [environment.get(name, SHARED) for name in jaxpr.outputs]

    def _note(self, place: str, operands: list[Value], results: list[Value], where: ShardMap) -> None:
        for found, values in ((self.found.results, results), (self.found.operands, operands)):
            before = found.get(place, [SHARED] * len(values))
            found[place] = tuple(join(pair) for pair in zip(before, values, strict=True))
        if not where.checked:
            self.found.unchecked.add(place)

    def _equation(
        self,
        equation: Equation,
        place: str,
        operands: list[Value],
        residuals: dict[str, _Residual],
        where: ShardMap | None,
    ) -> Sequence[Value]:
        is_too_much = self.depth > MAX_DEPTH or len(self.known) > MAX_CALLS
        bodies = {} if is_too_much else dict(equation.bodies)
        if equation.shard_map is not None and bodies:
            return self._shard_map(
                equation, equation.shard_map, next(iter(bodies.values())), place, operands, residuals
            )
        match equation.primitive:
            case "scan" if "jaxpr" in bodies and equation.loop is not None:
                return self._scan(bodies["jaxpr"], equation.loop, operands, where)
            case "while" if {"cond_jaxpr", "body_jaxpr"} <= bodies.keys() and equation.loop is not None:
                return self._while(bodies["cond_jaxpr"], bodies["body_jaxpr"], equation.loop, operands, where)
            case "cond" if bodies and operands:
                return self._cond(list(bodies.values()), operands, where)
        for name in CALLED:
            if name in bodies and len(self.program.jaxprs[bodies[name]].inputs) == len(operands):
                return self.call(bodies[name], operands, where)
        result = self._first_order(equation, place, operands, bodies.values())
        if self.by_blocks and (exchanged := self._exchanged(equation, where)):
            result = value_of((*result, *(Held(axis, "exchanged", (place, None)) for axis in exchanged)))
        return [result] * len(equation.outputs)

    def _exchanged(self, equation: Equation, where: ShardMap | None) -> Sequence[str]:
        """The axes along which a device may receive any other's value."""
        rule = rule_of(equation.primitive)
        if rule is None:
            is_foreign = is_kernel(equation.primitive) or equation.primitive in FOREIGN
            return where.axes if where is not None and is_foreign else ()
        axes = equation.axes or ()
        return axes if rule.lowers_to == "collective-permute" or (rule.equal and _in_groups(equation)) else ()

    def _first_order(self, equation: Equation, place: str, operands: list[Value], bodies: Iterable[int]) -> Value:
        joined = join(operands)
        rule = rule_of(equation.primitive)
        axes = equation.axes or ()
        if rule is None:
            inside = self._named_in(bodies)
            return value_of((*joined, *(Held(axis, "varying", (place, None)) for axis in inside)))
        if self.by_values:
            if rule.is_cast or (rule.equal and _in_groups(equation)):
                return joined
            gives: State = "invariant" if rule.equal else "varying"
        else:
            gives = rule.gives
        rest = without(joined, axes)
        if gives == "invariant":
            return rest
        known = {(held.axis, held.state): held for held in joined}
        return value_of((*rest, *(known.get((axis, gives), Held(axis, gives, (place, None))) for axis in axes)))

    def _named_in(self, bodies: Iterable[int]) -> list[str]:
        waiting, axes = list(bodies), dict[str, None]()
        seen = set(waiting)
        while waiting:
            for equation in self.program.jaxprs[waiting.pop()].equations:
                if equation.primitive == "axis_index":
                    axes |= dict.fromkeys(equation.axes or ())
                inner = {body for _, body in equation.bodies} - seen
                seen |= inner
                waiting += inner
        return list(axes)

    def _shard_map(
        self,
        equation: Equation,
        mapped: ShardMap,
        body: int,
        place: str,
        operands: list[Value],
        residuals: dict[str, _Residual],
    ) -> list[Value]:
        """Variance of a shard_map's results; a residual, passed on unchanged, keeps its own."""
        jaxpr, mesh = self.program.jaxprs[body], dict(equation.params).get("mesh", "")
        inputs = []
        names = zip(equation.inputs, operands, mapped.inputs, jaxpr.inputs, strict=False)
        for number, (name, operand, spec, variable) in enumerate(names):
            known = residuals.get(name) if self.by_values else None
            if known is not None and known.laid_out == (mesh, spec, variable.type.array):
                inputs.append(join((operand, known.value)))
            else:
                inputs.append(value_of((*operand, *(Held(axis, state, (place, number)) for axis, state in spec))))
        results = self.call(body, inputs, mapped)
        types = {variable.name: variable.type for each in jaxpr.equations for variable in each.outputs}
        for output, name, spec, value in zip(equation.outputs, jaxpr.outputs, mapped.outputs, results, strict=False):
            if name in types:
                residuals[output.name] = _Residual((mesh, spec, types[name].array), value)
        return [without(value, mapped.axes) for value in results]

    def _scan(self, body: int, loop: tuple[int, int], operands: list[Value], where: ShardMap | None) -> Sequence[Value]:
        constants, carried = loop
        fixed, carry, slices = (
            operands[:constants],
            operands[constants : constants + carried],
            operands[constants + carried :],
        )
        while True:
            results = self.call(body, [*fixed, *carry, *slices], where)
            wider = [join(pair) for pair in zip(carry, results, strict=False)]
            if all(map(same_axes, carry, wider)):
                return [*wider, *results[carried:]]
            carry = wider

    def _while(
        self, condition: int, body: int, loop: tuple[int, int], operands: list[Value], where: ShardMap | None
    ) -> Sequence[Value]:
        of_condition, of_body = loop
        split = of_condition + of_body
        carry = operands[split:]
        while True:
            going_on = self.call(condition, [*operands[:of_condition], *carry], where)
            results = self.call(body, [*operands[of_condition:split], *carry], where)
            decided = going_on if self.by_values else ()  # who stops earlier holds an earlier value
            wider = [join((*pair, *decided)) for pair in zip(carry, results, strict=False)]
            if all(map(same_axes, carry, wider)):
                return wider
            carry = wider

    def _cond(self, branches: list[int], operands: list[Value], where: ShardMap | None) -> Sequence[Value]:
        index, *arguments = operands
        decided = (index,) if self.by_values else ()
        each = [self.call(branch, arguments, where) for branch in branches]
        return [join((*results, *decided)) for results in zip(*each, strict=False)]


def _in_groups(equation: Equation) -> bool:
    return any(name == "axis_index_groups" and text != "None" for name, text in equation.params)
