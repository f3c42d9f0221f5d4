"""Which dimension of an operand is cut where a dimension of the result is."""

from __future__ import annotations

import math
import re

from ...catalog.spellings import rule_of
from ...ir.jaxpr import Equation
from .shapes import numbers_of, shape_of

ELEMENTWISE = frozenset(
    name
    for group in (
        "abs neg sign floor ceil round not is_finite integer_pow square sqrt rsqrt cbrt real imag",
        "exp exp2 expm1 log log1p logistic erf erfc erf_inv",
        "sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh atan2",
        "add sub mul div rem pow max min nextafter clamp select_n",
        "and or xor eq ne lt le gt ge shift_left shift_right_logical shift_right_arithmetic",
        "convert_element_type reduce_precision copy copy_p name stop_gradient add_any complex conj",
    )
    for name in group.split()
)
"""What gives element i of its result from the elements i of its operands, so that a block may be taken first."""

_LISTS = re.compile(r"\(([\d, ]*)\)")


def dimension_before(equation: Equation, position: int, operand: str, dim: int, parts: int) -> int | None:
    """The dimension of the operand at `position`, of type `operand`, that is cut where `dim` of the result is.

    Block i of `parts` equal ones of the result is made of block i of the operand alone. None where that is not so.
    """
    before, after = shape_of(operand), shape_of(equation.outputs[0].type) if equation.outputs else None
    if before is None or after is None or not 0 <= dim < len(after) or after[dim] % parts:
        return None
    found = _before(equation, position, before, after, dim)
    return None if found is None or not 0 <= found < len(before) or before[found] % parts else found


def passes(equation: Equation) -> bool:
    """Whether blocks of the result of an equation may be made of blocks of an operand."""
    return is_elementwise(equation) or equation.primitive in (*RESHAPING, "dot_general")


RESHAPING = (
    *("transpose", "broadcast_in_dim", "squeeze", "reshape", "expand_dims"),
    *("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or", "argmax", "argmin"),
)
"""What moves, adds or takes away dimensions."""


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
        case name if name in RESHAPING:
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
    shape = shape_of(equation.outputs[0].type) or ()
    first = len(batch) if position == 0 else len(shape) - len(free)
    return free[dim - first] if 0 <= dim - first < len(free) else None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def is_elementwise(equation: Equation) -> bool:
    """Whether an equation works element by element; casts over mesh axes do."""
    rule = rule_of(equation.primitive)
    if rule is not None:
        return rule.is_cast
    return equation.primitive in ELEMENTWISE and len(equation.outputs) == 1
