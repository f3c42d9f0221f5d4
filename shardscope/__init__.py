"""See how JAX shards a function, what it communicates, and from which line."""

from collections.abc import Callable
from typing import Any, TypeVar

from shardscope.version import __version__ as __version__

_F = TypeVar("_F", bound=Callable[..., Any])


def inputs(*args: Any, **kwargs: Any) -> Callable[[_F], _F]:
    """Name the arguments with which `shardscope run` inspects the decorated function.

    They may be concrete arrays or `jax.ShapeDtypeStruct`s, with or without shardings. The function itself is returned
    unchanged: the arguments are kept in its attribute `shardscope_inputs`, as a pair of a tuple and a dict.
    """

    def mark(function: _F) -> _F:
        function.shardscope_inputs = (args, kwargs)  # type: ignore[attr-defined]
        return function

    return mark
