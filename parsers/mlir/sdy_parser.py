"""The texts of Shardy's attributes, read by the grammar `sdy.lark`.

Each function takes the text of one attribute, with the prefix of the generic form or without it, and raises ParseError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from ..errors import ParseError
from ..expressions import compiled
from ..grammar import Grammar, several
from ..sharding_syntax.mesh import MESH_ACTIONS, AxisRef, MeshSyntax
from .lists import entries, items, symbol, unquote
from .sdy import (
    DimensionSharding,
    Exchange,
    Origin,
    Origins,
    PropagationEdge,
    PropagationStep,
    Sharding,
    ShardingRule,
    ValueRef,
)

AxisLists = tuple[tuple[AxisRef, ...], ...]


def parse_shardings(text: str) -> tuple[Sharding, ...]:
    """`#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, [{}]>]>`, or a single sharding with its prefix."""
    if text.startswith("#sdy.sharding<"):
        return (parse_sharding(text),)
    return _parse_list(text)


def parse_origins(text: str) -> Origins:
    """`{x = "self", "y:(1)2" = "mc_0_input: 1"}`: where each axis comes from."""
    return tuple((_axis(axis), _parse_origin(unquote(origin))) for axis, origin in entries(text).items())


def parse_each_origins(text: str) -> tuple[Origins, ...]:
    """A list of them, or one alone."""
    return tuple(map(parse_origins, items(text) if text.startswith("[") else (text,)))


def parse_propagation(text: str) -> tuple[PropagationStep, ...]:
    """`#sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>`."""
    # Hardly two of these texts are equal, but for the numbers of the steps: what they have in common is read once.
    numbers = _STEP.findall(text)
    try:
        common = _parse_edges(_STEP.sub("step-0", text))
    except ParseError:
        common = ()
    if len(common) == len(numbers):
        return tuple(PropagationStep(int(number), step.edges) for number, step in zip(numbers, common, strict=True))
    return _parse_edges(text)


def parse_each_propagation(text: str) -> tuple[tuple[PropagationStep, ...], ...]:
    """A list of them, or one alone."""
    return tuple(map(parse_propagation, items(text) if text.startswith("[") else (text,)))


def _mesh(axes: tuple[tuple[str, int], ...], device_ids: tuple[int, ...] | None) -> MeshSyntax:
    """The mesh; Shardy takes ids that are counted up from 0 for ids that are not given, unless there are no axes."""
    mesh = MeshSyntax(axes, device_ids)
    return MeshSyntax(axes) if axes and device_ids == tuple(range(mesh.size)) else mesh


def _axis(text: str) -> AxisRef:
    match = _AXIS.fullmatch(text)
    assert match is not None
    name, pre_size, size = match.groups()
    return AxisRef(name, (int(pre_size), int(size)) if size else None)


def _sharding(mesh: str | MeshSyntax, dims: tuple[DimensionSharding, ...], *more: Mapping[str, Any]) -> Sharding:
    details: dict[str, Any] = {}
    for each in more:
        if not details.keys().isdisjoint(each):
            raise ValueError(f"{next(iter(each))} is given twice")
        details |= each
    return Sharding(mesh, dims, **details)


def _dim(*parts: Any) -> DimensionSharding:
    *axes, priority = parts
    is_open = axes[-1:] == ["?"]
    closed = axes[:-1] if is_open else axes
    if "?" in closed:
        raise ValueError("'?' is not behind all axes")
    return DimensionSharding(tuple(closed), is_open, priority)


def _sharding_rule(
    operands: Any, results: Any, sizes: Any, *kinds: tuple[str, tuple[str, ...]] | str | None
) -> ShardingRule:
    named = dict(kind for kind in kinds if isinstance(kind, tuple))
    return ShardingRule(operands, results, sizes or (), **named, is_custom=kinds[-1] is not None)


def _value_ref(text: str) -> ValueRef:
    kind, _, index = text.partition("-")
    return ValueRef(kind, int(index))


_STEP = compiled(r"\bstep-(\d+)")
_AXIS = compiled(r"(.*?)(?::\((\d+)\)(\d+))?", re.DOTALL)
_GRAMMAR = Grammar(
    "sdy",
    {
        **MESH_ACTIONS,
        "mesh": _mesh,
        "sharding": _sharding,
        "dims": several,
        "dim": _dim,
        "replicated": lambda axes: {"replicated": axes},
        "unreduced": lambda reduction, axes: {"reduction": reduction or "sum", "unreduced": axes},
        "shardings": several,
        "axis_list": lambda axes: axes,
        "axis_lists": several,
        "exchanges": several,
        "exchange": Exchange,
        "sharding_rule": _sharding_rule,
        "tensors": several,
        "tensor": several,
        "factor_sizes": several,
        "factor_size": lambda factors, size: (factors[0], size),
        "factors_of_kind": lambda kind, *factors: (kind, tuple(chain.from_iterable(several(*factors)))),
        "self_origin": lambda: Origin("self"),
        "constraint_origin": lambda name: Origin("constraint", name),
        "edge_origin": lambda name, side, index: Origin(side, name, index),
        "propagation_edges": several,
        "step": lambda index, *edges: PropagationStep(index, several(*edges)),
        "edge": lambda axis, source, *targets: PropagationEdge(axis, source, targets),
        "QUOTED": unquote,
        "SYMBOL": symbol,
        "PRIORITY": lambda text: int(text[1:]),
        "FACTORS": lambda text: tuple(re.findall(r"z_\d+|[i-z]", text)),
        "MANUAL": lambda text: text.removesuffix("_"),
        "STEP": lambda text: int(text.partition("-")[2]),
        "VALUE": _value_ref,
    },
)

parse_mesh: Callable[[str], MeshSyntax] = _GRAMMAR.reader("mesh")
"""`<["x"=2, "y"=4], device_ids=[…]>`."""
parse_sharding: Callable[[str], Sharding] = _GRAMMAR.reader("sharding")
"""`#sdy.sharding<@mesh, [{"x"}, {}]>`."""
parse_axes: Callable[[str], tuple[AxisRef, ...]] = _GRAMMAR.reader("axis_list")
"""`{"x", "y":(1)2}`."""
parse_axis_lists: Callable[[str], AxisLists] = _GRAMMAR.reader("axis_lists")
"""`[{"x"}, {}]`: for each dimension, some axes."""
parse_exchanges: Callable[[str], tuple[Exchange, ...]] = _GRAMMAR.reader("exchanges")
"""`[{"x"}: 0->1]`: what an all-to-all does."""
parse_sharding_rule: Callable[[str], ShardingRule] = _GRAMMAR.reader("sharding_rule")
"""`#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=64, j=32, k=128} reduction={k}>`."""
_parse_list: Callable[[str], tuple[Sharding, ...]] = _GRAMMAR.reader("shardings")
_parse_origin: Callable[[str], Origin] = _GRAMMAR.reader("origin")
_parse_edges: Callable[[str], tuple[PropagationStep, ...]] = _GRAMMAR.reader("propagation_edges")
