"""The structure of a jaxpr: all equations, what their parameters say, and the user frames that they come from.

Names of parameters differ between JAXes, which keep tracebacks in a private attribute of `source_info`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

import jax

from ....catalog.spellings import rule_of
from ...protocol.trace import Place
from .. import backward_lines
from ..failures import HERE, is_internal, is_pythons_own
from .avals import entries


def is_checked(equation: Any) -> bool:
    """Return whether a shard_map checks which values vary."""
    return bool(equation.params["check_vma"])


def manual_axes(equation: Any) -> list[str]:
    """The axes that become manual in a shard_map, in the order of its mesh."""
    params = equation.params
    named = params["newly_manual_axes" if "newly_manual_axes" in params else "manual_axes"]  # the latter in JAX 0.7
    return [str(axis) for axis in params["mesh"].axis_names if axis in named]


def shard_map(equation: Any) -> dict[str, Any] | None:
    """The fields of `ShardMap` in `inspector/ir/jaxpr.py`; None for an equation that is none."""
    if equation.primitive.name != "shard_map":
        return None
    info = getattr(equation.params.get("jaxpr"), "debug_info", None)
    return {
        "axes": manual_axes(equation),
        "checked": is_checked(equation),
        "inputs": [_axes(spec) for spec in equation.params.get("in_specs", ())],
        "outputs": [_axes(spec) for spec in equation.params.get("out_specs", ())],
        "sizes": [(str(name), int(size)) for name, size in dict(equation.params["mesh"].shape).items()],
        "names": [str(name or "") for name in getattr(info, "arg_names", None) or ()],
    }


def loop(equation: Any) -> tuple[int, int] | None:
    """Return how many inputs of a scan are constants and carried; of a while loop, for condition and body."""
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
    line = line_of(equation)
    return None if line is None else f"{line.file}:{line.line}"


def line_of(equation: Any) -> Place | None:
    """The user's line that an equation comes from."""
    stacks = Stacks()
    stack = stacks.of(equation, [])
    return Place(stacks.frames[stack[0]][0], stacks.frames[stack[0]][2]) if stack else None


def bodies(equation: Any) -> Iterator[Any]:
    """The jaxprs among an equation's parameters."""
    for name, value in equation.params.items():
        yield from (body for _, body in bodies_in(name, value))


def bodies_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The jaxprs in one parameter, each with what to call it: `jaxpr`, `branches[1]`."""
    if isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from bodies_in(f"{name}[{index}]", item)
    elif hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
        yield name, opened(value)


def opened(jaxpr: Any) -> Any:
    """The jaxpr of a closed one; since JAX 0.12 there is only one kind."""
    return getattr(jaxpr, "jaxpr", jaxpr)


Frame = tuple[str, str, int, int, int, int]
"""File, function, line, end line, column, end column; columns count from 0, as Python's and JAX's do."""


def probe() -> str | None:
    """Return what cannot be known with this version of JAX because attributes have moved."""
    equation = jax.make_jaxpr(lambda x: x + 1)(1).jaxpr.eqns[0]
    if _traceback(equation) is None:
        return f"JAX {jax.__version__} keeps no source_info.traceback: equations have no source lines"
    return None


class Stacks:
    """A table of distinct frames; a stack is a list of indices into it, innermost first."""

    def __init__(self) -> None:
        self._indices: dict[Frame, int] = {}

    @property
    def frames(self) -> list[Frame]:
        """The table."""
        return list(self._indices)

    def of(self, equation: Any, enclosing: list[int]) -> list[int]:
        """The user's frames of an equation, JAX's own left out.

        JAX 0.8 and later record inside the body of a shard_map only the frames of the body: the stack goes on with
        `enclosing`, that of the equation around it. A whole one reaches down to where this process called the function.
        """
        traceback = _traceback(equation)
        if traceback is None:
            return list(enclosing)
        codes, instructions = traceback.raw_frames()
        found = map(_frame, codes, instructions)
        stack = [self._indices.setdefault(frame, len(self._indices)) for frame in found if frame is not None]
        whole = any(code.co_filename.startswith(HERE) and not _is_of_backward(code) for code in reversed(codes))
        return stack if whole else [*stack, *enclosing]


def name_stack(equation: Any) -> str:
    """The name scopes around an equation, as they come to stand in `op_name`."""
    return str(getattr(getattr(equation, "source_info", None), "name_stack", ""))


def is_in_custom_vjp(equation: Any) -> bool:
    """Return whether a collective, or an equation with a body, comes from the functions of a `custom_vjp`.

    JAX was in the call of one when it was traced, or in what stands around its backward function.
    """
    is_looked_at = rule_of(equation.primitive.name) is not None or any(bodies(equation))
    traceback = _traceback(equation) if is_looked_at else None
    codes = () if traceback is None else traceback.raw_frames()[0]
    return any(
        (code.co_filename.endswith("custom_derivatives.py") and _qualified(code) == "custom_vjp.__call__")
        or _is_of_backward(code)
        for code in codes
    )


def _is_of_backward(code: CodeType) -> bool:
    return code.co_filename == backward_lines.__file__


def _qualified(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)


def _traceback(equation: Any) -> Any:
    traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
    return traceback if hasattr(traceback, "raw_frames") else None


@lru_cache(maxsize=1 << 16)
def _frame(code: CodeType, instruction: int) -> Frame | None:
    if is_internal(code.co_filename) or is_pythons_own(code.co_filename):
        return None
    name, positions = _qualified(code), _positions(code)
    if instruction // 2 >= len(positions):
        return code.co_filename, name, code.co_firstlineno, 0, 0, 0
    line, end_line, column, end_column = positions[instruction // 2]
    return code.co_filename, name, line or 0, end_line or 0, column or 0, end_column or 0


@lru_cache(maxsize=1 << 10)
def _positions(code: CodeType) -> tuple[tuple[int | None, int | None, int | None, int | None], ...]:
    """The places of a function's instructions, which Python decodes from the first on: once, for a long function."""
    return tuple(code.co_positions())
