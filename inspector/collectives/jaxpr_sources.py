"""Source lines of collectives that lost theirs in the compiler, from the equations of the jaxpr.

JAX 0.7 records no positions inside shard_map bodies; the jaxpr still has them. A collective's line is certain enough
when all equations of its kind, axes and types stand on that one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Frame
from ..catalog.spellings import PRIMITIVES
from ..ir.jaxpr_text import JaxprText
from ..report import Collective, SourcePosition

Key = tuple[str, frozenset[AxisRef], tuple[str, ...]]


def with_jaxpr_sources(collectives: Iterable[Collective], text: JaxprText) -> Iterator[Collective]:
    """The same collectives; those that the user wrote have the line of their equation where they had none."""
    stacks: dict[Key, set[tuple[Frame, ...]]] = {}
    for place in text.equations:
        equation = place.equation
        kind = PRIMITIVES.get(equation.primitive)
        if kind is not None and equation.axes is not None:
            types = tuple(_array_type(output.type) for output in equation.outputs)
            stacks.setdefault((kind, frozenset(map(AxisRef, equation.axes)), types), set()).add(text.stack(equation))
    for collective in collectives:
        yield _with_source(collective, stacks)


def _with_source(collective: Collective, stacks: dict[Key, set[tuple[Frame, ...]]]) -> Collective:
    if collective.source.stack or collective.origin != "user" or collective.axes is None:
        return collective
    types = tuple(map(str, collective.result_types))
    candidates = stacks.get((collective.kind, frozenset(collective.axes), types), set())
    lines = {(stack[0].file, stack[0].line) for stack in candidates if stack}
    if len(lines) != 1:
        return collective
    return replace(collective, source=SourcePosition(max(candidates, key=len), "shape"))


def _array_type(type: str) -> str:
    """A jaxpr's type without the axes that it varies over."""
    return type.partition("{")[0]
