"""The table of errors in tracing: patterns of JAX's messages, and the explainers for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..report import Explanation
from . import carries, explicit, explicit_bodies, mapped_arguments, operations, specs, unreduced, whole
from .failed import Failed

_Explain = Callable[[Failed, re.Match[str]], Explanation | None]

EXPLAINERS: tuple[tuple[re.Pattern[str], _Explain], ...] = (
    (specs.LACKS_AXES, specs.explain_lacking_axes),
    (carries.CARRY, carries.explain_carry),
    (carries.BRANCHES, carries.explain_branches),
    (operations.MIXED, operations.explain_mixed),
    (operations.CAST, operations.explain_cast),
    (operations.UNBOUND, operations.explain_unbound),
    (specs.TOO_LONG, specs.explain_too_long),
    (operations.AMBIGUOUS, operations.explain_explicit),
    (explicit.ALIKE, explicit.explain_alike),
    (explicit.ILLEGAL, explicit.explain_illegal),
    (explicit.CONTRACTED, explicit.explain_contracted),
    (explicit.LOOKUP, explicit.explain_lookup),
    (explicit.RESHAPE, explicit.explain_reshape),
    (explicit.UPDATE, explicit.explain_update),
    (explicit.SCATTER, explicit.explain_scatter),
    (explicit.CONSTRAINT, explicit.explain_constraint),
    (mapped_arguments.IN_SPECS, mapped_arguments.explain_in_specs),
    (explicit_bodies.CARRY, explicit_bodies.explain_carry),
    (explicit_bodies.BRANCHES, explicit_bodies.explain_branches),
    (explicit_bodies.CONVOLUTION, explicit_bodies.explain_convolution),
    (explicit_bodies.MESHES, explicit_bodies.explain_meshes),
    (whole.WHOLE, whole.explain_whole),
    (unreduced.OTHER_AXES, unreduced.explain_other_axes),
    (unreduced.UNLIKE, unreduced.explain_unlike),
    (unreduced.ONE_SIDE, unreduced.explain_one_side),
    (unreduced.PRODUCT, unreduced.explain_products),
)
"""Patterns of JAX's messages, and the explainers for them."""


def explainers(said: str) -> Iterator[tuple[_Explain, re.Match[str]]]:
    """Yield the explainers that know a message, in order, with what they read in it."""
    matches = ((explain, pattern.search(said)) for pattern, explain in EXPLAINERS)
    return ((explain, match) for explain, match in matches if match is not None)
