"""What is in a jaxpr: all of its equations, and how shard_maps and loops divide their operands among their bodies.

Names of parameters differ between JAXes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .specs import entries
from .stacks import Stacks


def is_checked(equation: Any) -> bool:
    """Whether a shard_map checks which values vary."""
    return bool(equation.params.get("check_vma", equation.params.get("check_rep", False)))


def manual_axes(equation: Any) -> list[str]:
    """The axes that become manual in a shard_map, in the order of its mesh."""
    params = equation.params
    named = params.get("newly_manual_axes", params.get("manual_axes"))
    axes = params["mesh"].axis_names
    return [str(axis) for axis in axes if named is None or axis in named]


def shard_map(equation: Any) -> dict[str, Any] | None:
    """The fields of `ShardMap` in `inspector/ir/jaxpr.py`; None for an equation that is none."""
    if equation.primitive.name != "shard_map":
        return None
    return {
        "axes": manual_axes(equation),
        "checked": is_checked(equation),
        "inputs": [_axes(spec) for spec in equation.params.get("in_specs", ())],
        "outputs": [_axes(spec) for spec in equation.params.get("out_specs", ())],
    }


def loop(equation: Any) -> tuple[int, int] | None:
    """How many inputs of a scan are constants, and carried; of a while loop, for its condition, and for its body."""
    params = equation.params
    match equation.primitive.name:
        case "while":
            return params["cond_nconsts"], params["body_nconsts"]
        case "scan" if "num_consts" in params:
            return params["num_consts"], params["num_carry"]
        case "scan" if "ft_in" in params:  # since JAX 0.11
            try:
                constants, carried, _ = params["ft_in"].unpack()
            except (AttributeError, ValueError):
                return None
            return len(constants), len(carried)
    return None


def _axes(spec: Any) -> list[tuple[str, str]]:
    named = [axis for entry in entries(spec) for axis in (entry if isinstance(entry, tuple) else (entry,))]
    found = [(axis, "varying") for axis in named if isinstance(axis, str)]
    for state in ("unreduced", "reduced"):
        found += [(str(axis), state) for axis in sorted(map(str, getattr(spec, state, None) or ()))]
    return found


def equations_of(jaxpr: Any) -> Iterator[Any]:
    """Every equation once, however often the jaxpr that it is in is used."""
    seen: set[int] = set()
    waiting = [jaxpr]
    while waiting:
        current = opened(waiting.pop())
        if id(current) in seen:
            continue
        seen.add(id(current))
        for equation in current.eqns:
            yield equation
            waiting += bodies(equation)


def place_of(equation: Any) -> str | None:
    """The user's line that an equation comes from, as `file:line`."""
    stacks = Stacks()
    stack = stacks.of(equation, [])
    return f"{stacks.frames[stack[0]][0]}:{stacks.frames[stack[0]][2]}" if stack else None


def bodies(equation: Any) -> Iterator[Any]:
    """The jaxprs among an equation's parameters."""
    for value in equation.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(item, "eqns") or hasattr(getattr(item, "jaxpr", None), "eqns"):
                yield item


def opened(jaxpr: Any) -> Any:
    """The jaxpr of a closed one; since JAX 0.12 there is only one kind."""
    return getattr(jaxpr, "jaxpr", jaxpr)
