"""Element by element: the numeric meaning of each opcode that gives element i from elements i of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .element_types import Array, array_type, converted, wrapped
from .memory import reinterpreted
from .operation import Meaning, Operation

_ERF: Callable[[Array], Array] = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    """The error function."""
    return np.asarray(_ERF(x)).astype(np.float64)


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _cbrt(x: Array) -> Array:
    return np.cbrt(x)


def _leading_zeros(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    unsigned = x.view(f"u{x.dtype.itemsize}")
    found = np.full(x.shape, bits, np.int64)
    for bit in range(bits):
        found[(unsigned >> unsigned.dtype.type(bit)) & unsigned.dtype.type(1) == 1] = bits - 1 - bit
    return found


def _sign(x: Array) -> Array:
    return np.where(x == 0, x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "cbrt": _cbrt,
    "ceil": np.ceil,
    "cosine": np.cos,
    "count-leading-zeros": _leading_zeros,
    "erf": erf,
    "exponential": np.exp,
    "exponential-minus-one": np.expm1,
    "floor": np.floor,
    "imag": np.imag,
    "is-finite": np.isfinite,
    "log": np.log,
    "log-plus-one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "negate": lambda x: -x,
    "not": lambda x: ~x,
    "popcnt": np.bitwise_count,
    "real": np.real,
    "round-nearest-afz": _round_away,
    "round-nearest-even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sign": _sign,
    "sine": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


def _divide(x: Array, y: Array) -> Array:
    """The quotient; of integers towards zero, and all ones of a division by zero."""
    if x.dtype.kind not in "iu":
        return x / y
    divisor = np.where(y == 0, y.dtype.type(1), y)
    quotient = x - np.fmod(x, divisor)
    return np.where(y == 0, ~x.dtype.type(0), quotient // divisor).astype(x.dtype)


def _remainder(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y))).astype(x.dtype)


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    raised = np.power(x, np.maximum(y, 0))
    return np.where(y < 0, np.where(np.abs(x) == 1, np.power(x, np.abs(y) % 2), 0), raised).astype(x.dtype)


def _high_half(x: Array, y: Array) -> Array:
    """The upper half of the bits of the product of two integers: `mulhi` of TPUs."""
    size = x.dtype.itemsize
    wide = object if size == 8 else f"{x.dtype.kind}8"
    return np.asarray((x.astype(wide) * y.astype(wide)) >> np.asarray(size * 8, wide)).astype(x.dtype)


def _shift(kind: str) -> Callable[[Array, Array], Array]:
    def shifted(x: Array, y: Array) -> Array:
        size = x.dtype.itemsize
        bits = size * 8
        count = y.view(f"u{size}") if y.dtype.kind == "i" else y
        is_all = count >= bits
        count = np.where(is_all, count.dtype.type(0), count)
        if kind == "arithmetic":
            signed = x.view(f"i{size}")
            found = np.where(is_all, signed >> (bits - 1), signed >> count.astype(signed.dtype))
        else:
            unsigned = x.view(f"u{size}")
            moved = unsigned << count if kind == "left" else unsigned >> count
            found = np.where(is_all, unsigned.dtype.type(0), moved)
        return found.astype(found.dtype).view(x.dtype)

    return shifted


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda x, y: x | y if x.dtype == bool else x + y,
    "and": np.bitwise_and,
    "atan2": np.arctan2,
    "complex": lambda x, y: x + 1j * y,
    "divide": _divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mulhi": _high_half,
    "multiply": lambda x, y: x & y if x.dtype == bool else x * y,
    "or": np.bitwise_or,
    "power": _power,
    "remainder": _remainder,
    "shift-left": _shift("left"),
    "shift-right-arithmetic": _shift("arithmetic"),
    "shift-right-logical": _shift("logical"),
    "subtract": np.subtract,
    "xor": np.bitwise_xor,
}

COMPARED: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
    "NE": np.not_equal,
}

REDUCTIONS = {
    "add": np.add,
    "and": np.bitwise_and,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""The opcodes by which computations of two scalars reduce, as numpy has them."""


def unary(operation: Operation) -> Meaning:
    """`negate` and the like."""
    compute, name = UNARY[operation.opcode], operation.dtype
    return lambda x: converted(compute(np.asarray(x)), name)


def binary(operation: Operation) -> Meaning:
    """`add` and the like."""
    compute, name = BINARY[operation.opcode], operation.dtype
    return lambda x, y: converted(np.asarray(compute(np.asarray(x), np.asarray(y))), name)


def compare(operation: Operation) -> Meaning:
    """`compare`; in the total order -NaN < -inf, -0 < 0, and inf < NaN."""
    compute = COMPARED[operation.attributes["direction"]]
    is_total = operation.attributes.get("type") == "TOTALORDER" or operation.attributes.get("order") == "TOTAL"
    if is_total and array_type(operation.operand_types[0]).dtype[0] in "fb":
        return lambda x, y: compute(_total_order(x), _total_order(y))
    return lambda x, y: compute(x, y)


def _total_order(x: Array) -> Array:
    bits = np.ascontiguousarray(x).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits).reshape(np.shape(x))


def select(operation: Operation) -> Meaning:
    """`select`."""
    return lambda chosen, x, y: np.where(chosen, x, y)


def clamp(operation: Operation) -> Meaning:
    """`clamp`: NaN stays."""
    name = operation.dtype
    return lambda low, x, high: converted(np.minimum(np.maximum(x, low), high), name)


def convert(operation: Operation) -> Meaning:
    """`convert`: the identity between floats."""
    name = operation.dtype
    return lambda x: converted(x, name)


def bitcast_convert(operation: Operation) -> Meaning:
    """`bitcast-convert`."""
    given, name, dims = array_type(operation.operand_types[0]).dtype, operation.dtype, operation.dims

    def reread(x: Array) -> Array:
        same = len(dims) == len(array_type(operation.operand_types[0]).dims)
        return wrapped(reinterpreted(x, given, name, np.shape(x) if same else dims), name)

    return reread


def identity(operation: Operation) -> Meaning:
    """The first operand: `copy`, `reduce-precision` and the like."""
    return lambda x, *_: x


MEANINGS: dict[str, Callable[[Operation], Meaning]] = {
    **dict.fromkeys(UNARY, unary),
    **dict.fromkeys(BINARY, binary),
    **dict.fromkeys(("copy", "domain", "reduce-precision"), identity),
    "bitcast-convert": bitcast_convert,
    "clamp": clamp,
    "compare": compare,
    "convert": convert,
    "select": select,
    "stochastic-convert": convert,
}
