"""Operations that work element by element."""

from __future__ import annotations

from ...catalog.spellings import rule_of
from ...ir.jaxpr import Equation

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


def is_elementwise(equation: Equation) -> bool:
    """Whether an equation works element by element; casts over mesh axes do."""
    rule = rule_of(equation.primitive)
    if rule is not None:
        return rule.is_cast
    return equation.primitive in ELEMENTWISE and len(equation.outputs) == 1
