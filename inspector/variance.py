"""The mesh axes in the types of a jaxpr's values, as JAX's own type system states them."""

from __future__ import annotations

from functools import lru_cache

from .jaxpr_text import JaxprText
from .report import SourcePlace, VariableVariance


@lru_cache(maxsize=8)
def declared_variance(text: JaxprText) -> tuple[VariableVariance, ...]:
    """What each equation inside a shard_map gives, in the order in which the equations print."""
    return tuple(
        VariableVariance(
            equation=place.id,
            primitive=place.equation.primitive,
            value=output.name,
            type=output.type,
            varying=output.varying,
            unreduced=output.unreduced or (),
            reduced=output.reduced or (),
            source=SourcePlace(stack, "exact" if stack else "none"),
        )
        for place in text.equations
        for output in place.equation.outputs
        if output.varying is not None
        for stack in (text.stack(place.equation),)
    )
