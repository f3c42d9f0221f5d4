"""Lines of backward passes that users write: JAX gives what the backward function of a `custom_vjp` does its call's.

While it traces that function, JAX has the call's traceback stand for all that is traced. Without one it takes the real
one, as everywhere else. Touches `jax._src.custom_derivatives.custom_vjp.defvjp` and the context of
`jax._src.source_info_util` (JAX 0.7 to 0.12); the program differs in its locations alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .patches import change_after_import


def watch_imports() -> None:
    """Have backward functions keep their own lines, from the moment at which the script imports JAX."""
    change_after_import({"jax._src.custom_derivatives": _change})


def _change(module: ModuleType) -> None:
    wrapper: Any = getattr(module, "custom_vjp", None)
    define = getattr(wrapper, "defvjp", None)
    if define is None:
        return

    @functools.wraps(define)
    def defvjp(self: Any, fwd: Callable[..., Any], bwd: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return define(self, fwd, with_own_lines(bwd), *args, **kwargs)

    wrapper.defvjp = defvjp


def with_own_lines(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward function that is traced with its own tracebacks."""
    from jax._src import source_info_util

    around = getattr(source_info_util, "_source_info_context", None)
    empty = getattr(source_info_util, "new_source_info", None)
    if around is None or empty is None:
        return backward

    @functools.wraps(backward)
    def traced(*args: Any, **kwargs: Any) -> Any:
        outer = around.context
        around.context = empty().replace(name_stack=outer.name_stack)
        try:
            return backward(*args, **kwargs)
        finally:
            around.context = outer

    return traced
