"""HLO's opcodes by what they do to elements."""

from __future__ import annotations

HLO_ELEMENTWISE = frozenset(
    name
    for group in (
        "abs negate sign floor ceil round-nearest-afz round-nearest-even not is-finite sqrt rsqrt cbrt real imag",
        "exponential exponential-minus-one log log-plus-one logistic erf sine cosine tan tanh atan2",
        "add subtract multiply divide remainder power maximum minimum clamp select and or xor compare complex",
        "shift-left shift-right-logical shift-right-arithmetic popcnt clz",
        "convert reduce-precision stochastic-convert copy",
    )
    for name in group.split()
)
"""Opcodes that give element i of their result from elements i of their operands."""
