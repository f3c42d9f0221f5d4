"""The user's Python frames of an equation. JAX keeps tracebacks in a private attribute of `source_info`."""

from __future__ import annotations

from functools import lru_cache
from types import CodeType
from typing import Any

import jax

from ..failures import HERE, is_internal, is_pythons_own

Frame = tuple[str, str, int, int, int, int]
"""File, function, line, end line, column, end column; columns count from 0, as Python's and JAX's do."""


def probe() -> str | None:
    """What cannot be known with this JAX, if its attributes have moved."""
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
        whole = any(code.co_filename.startswith(HERE) for code in reversed(codes))
        return stack if whole else [*stack, *enclosing]


def name_stack(equation: Any) -> str:
    """The name scopes around an equation, as they come to stand in `op_name`."""
    return str(getattr(getattr(equation, "source_info", None), "name_stack", ""))


def _traceback(equation: Any) -> Any:
    traceback = getattr(getattr(equation, "source_info", None), "traceback", None)
    return traceback if hasattr(traceback, "raw_frames") else None


@lru_cache(maxsize=1 << 16)
def _frame(code: CodeType, instruction: int) -> Frame | None:
    if is_internal(code.co_filename) or is_pythons_own(code.co_filename):
        return None
    name = getattr(code, "co_qualname", code.co_name)
    for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if index == instruction // 2:
            return code.co_filename, name, line or 0, end_line or 0, column or 0, end_column or 0
    return code.co_filename, name, code.co_firstlineno, 0, 0, 0
