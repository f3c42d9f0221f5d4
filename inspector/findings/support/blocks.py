"""Blocks of a value through other values: the shapes of a jaxpr's values, and all uses of one."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from msgspec import field

from ....parsers.hlo.fields import number
from ....parsers.record import Record
from ...dataflow.graph import Output
from ...dataflow.meaning import POINTWISE, Does, does
from ...ir.jaxpr import Equation, literal_in
from ...ir.jaxpr_text import EquationPlace
from ...ir.types import ArrayType
from .jaxpr_flow import MAX_STEPS, At, Flow, Use

LOCAL = Does.FORWARD | Does.CAST | POINTWISE
"""Operations whose element i depends on elements i of the operands, so that a block may be taken first."""

RESHAPING = Does.RESHAPE | Does.REPEAT | Does.REDUCE
"""Operations that move, add or remove dimensions."""

_LISTS = re.compile(r"\(([\d, ]*)\)")


def numbers_of(equation: Equation, parameter: str) -> tuple[int, ...]:
    """A parameter that is a tuple of numbers, as `slice_sizes=(4, 16)`; empty where it is something else."""
    parts = dict(equation.params).get(parameter, "").strip("()").replace(" ", "").split(",")
    wanted = [part for part in parts if part]
    return tuple(map(int, wanted)) if all(part.isdecimal() and len(part) < 19 for part in wanted) else ()


def dimension_before(equation: Equation, position: int, operand: ArrayType, dim: int, parts: int) -> int | None:
    """The dimension of the operand at `position`, of type `operand`, that is cut where `dim` of the result is.

    Block i of `parts` equal ones of the result is made of block i of the operand alone. None where that is not so.
    """
    before, after = operand.shape, equation.outputs[0].type.array.shape if equation.outputs else None
    if before is None or after is None or not 0 <= dim < len(after) or after[dim] % parts:
        return None
    found = _before(equation, position, before, after, dim)
    return None if found is None or not 0 <= found < len(before) or before[found] % parts else found


def passes(equation: Equation) -> bool:
    """Return whether blocks of an equation's result may be computed from blocks of an operand."""
    return is_elementwise(equation) or not does(equation.primitive) & ~(RESHAPING | Does.CONTRACT)


def _before(equation: Equation, position: int, before: tuple[int, ...], after: tuple[int, ...], dim: int) -> int | None:
    match equation.primitive:
        case "transpose":
            order = numbers_of(equation, "permutation")
            return order[dim] if len(order) == len(after) else None
        case "broadcast_in_dim":
            places = numbers_of(equation, "broadcast_dimensions")
            return places.index(dim) if dim in places and before[places.index(dim)] == after[dim] else None
        case "squeeze":
            return _kept(len(before), numbers_of(equation, "dimensions"))[dim]
        case "reshape" | "expand_dims":
            # Blocks of the flat array: as many of them, and equally long, on both sides.
            ahead = math.prod(after[:dim])
            return next((d for d in range(len(before)) if math.prod(before[:d]) == ahead and before[d] > 1), None)
        case "dot_general":
            return _of_product(equation, position, len(before), dim)
        case name if does(name) is Does.REDUCE:
            return _kept(len(before), numbers_of(equation, "axes"))[dim]
    return dim if is_elementwise(equation) and before == after else None


def _kept(rank: int, dropped: tuple[int, ...]) -> list[int]:
    return [*(dim for dim in range(rank) if dim not in dropped), *[-1] * rank]


def _of_product(equation: Equation, position: int, rank: int, dim: int) -> int | None:
    """A dimension of a product is one of its batch, or one that an operand does not contract: first the left one's."""
    lists = [_numbers(found) for found in _LISTS.findall(dict(equation.params).get("dimension_numbers", ""))]
    if len(lists) != 4 or position > 1:
        return None
    contracted, batch = lists[position], lists[2 + position]
    free = [d for d in range(rank) if d not in contracted and d not in batch]
    if dim < len(batch):
        return batch[dim]
    shape = equation.outputs[0].type.array.shape or ()
    first = len(batch) if position == 0 else len(shape) - len(free)
    return free[dim - first] if 0 <= dim - first < len(free) else None


def _numbers(text: str) -> list[int]:
    return [found for part in text.split(",") if (found := number(part.strip())) is not None]


def is_elementwise(equation: Equation) -> bool:
    """Return whether an equation works element by element; casts over mesh axes do."""
    return len(equation.outputs) == 1 and not does(equation.primitive) & ~LOCAL


class Step(Record, frozen=True):
    """One value becomes another: by an equation, or, where `use` is None, by going into a body or out of it."""

    before: At
    use: Use | None
    after: At


class Reached(Record, frozen=True):
    """The uses at which a value's path ends, and the steps up to there."""

    start: At
    ends: list[Use] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    @property
    def through(self) -> tuple[EquationPlace, ...]:
        """The equations on the way."""
        return tuple(dict.fromkeys(step.use.place for step in self.steps if step.use is not None))

    def is_local(self, flow: Flow) -> bool:
        """Return whether all equations on the way are elementwise, with no other operands than numbers."""
        on_the_way = {self.start, *(step.after for step in self.steps)}
        for step in self.steps:
            use = step.use
            if use is not None:
                operands = [At(use.place.jaxpr, name, use.calls) for name in use.place.equation.inputs]
                others = [each for each in operands if each not in on_the_way and literal_in(each.name) is None]
                types = [flow.type_of(each) for each in others]
                if not is_elementwise(use.place.equation) or any(t is None or t.array.shape != () for t in types):
                    return False
        return True

    def dimension(self, flow: Flow, cut: Iterable[tuple[At, int]], parts: int) -> int | None:
        """The dimension of the first value that is cut where, at the ends, these values are cut in `parts` blocks.

        None where it is not the same one for all of them.
        """
        wanted = dict(cut)
        into: dict[At, list[Step]] = {}
        for step in self.steps:
            into.setdefault(step.after, []).append(step)
        waiting = list(wanted)
        while waiting:
            value = waiting.pop()
            for step in into.get(value, ()):
                dim: int | None = wanted[value]
                if step.use is not None and dim is not None:
                    type = flow.type_of(step.before)
                    if type is None:
                        return None
                    dim = dimension_before(step.use.place.equation, step.use.position, type.array, dim, parts)
                if dim is None or wanted.setdefault(step.before, dim) != dim:
                    return None
                waiting.append(step.before)
        return wanted.get(self.start)


def reached(flow: Flow, start: At, is_end: Callable[[Use], bool]) -> Reached | None:
    """Return where a value's path ends; None if it has no use, or a use of another kind."""
    found = Reached(start)
    waiting, seen = [start], {start}
    while waiting:
        value = waiting.pop()
        for use in flow.uses(value):
            if use is None or isinstance(use, Output) or len(seen) > MAX_STEPS:
                return None
            if not isinstance(use, Use):
                after = use
                found.steps.append(Step(value, None, after))
            elif is_end(use):
                found.ends.append(use)
                continue
            elif passes(use.place.equation):
                after = At(use.place.jaxpr, use.place.equation.outputs[0].name, use.calls)
                found.steps.append(Step(value, use, after))
            else:
                return None
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return found if found.ends else None
