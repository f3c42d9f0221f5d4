"""See how JAX shards a function, what it communicates, and from which line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from shardscope.version import __version__ as __version__

TYPE_CHECKING = False  # `typing` takes longer to import than all else here

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any, TypeVar

    from shardscope.inspector.report import Report

    _F = TypeVar("_F", bound=Callable[..., Any])

# In a checkout the subpackages are folders beside this one, and not in it as an installation has them. From the root of
# the checkout, Python finds this folder before any installation.
_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(_HERE)
if not os.path.exists(os.path.join(_HERE, "parsers")) and all(
    os.path.isfile(os.path.join(_ROOT, *path)) for path in (("pyproject.toml",), ("parsers", "lalr", "automaton.py"))
):
    __path__.append(_ROOT)

Allowed = int | Mapping[str | tuple[str, ...], int]
"""Allowed number of collectives of a kind: in all, or by their mesh axes, `"y"` or `("x", "y")`."""


def inputs(*args: Any, **kwargs: Any) -> Callable[[_F], _F]:
    """Name the arguments with which `shardscope run` inspects the decorated function.

    They may be concrete arrays or `jax.ShapeDtypeStruct`s, with or without shardings. The function itself is returned
    unchanged: the arguments are kept in its attribute `shardscope_inputs`, as a pair of a tuple and a dict.
    """

    def mark(function: _F) -> _F:
        function.shardscope_inputs = (args, kwargs)  # type: ignore[attr-defined]
        return function

    return mark


def record(folder: str) -> AbstractContextManager[None]:
    """Record every program that JAX compiles within a `with` statement, for `shardscope open FOLDER`.

    The calls that are counted are those of these programs. Processes may share a folder.
    """
    from shardscope.inspector.capture.here import recording

    return recording(folder)


def inspect(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report:
    """Trace, lower and compile a call in this process, without running it, and report what is in the program.

    Arguments are arrays or `jax.ShapeDtypeStruct`s. In a notebook the report shows itself. What tracing or compiling
    raises is raised.
    """
    from shardscope.api import inspect_call

    return inspect_call(function, args, kwargs)


def load(file: str | bytes | os.PathLike[str], *, module: str | None = None, python: str | None = None) -> Report:
    """Report what a saved capture, a text of HLO or StableHLO, or a folder of dumps holds: a path, or a text itself.

    Files may be compressed, in a zip archive, bytecode or protocol buffers. Of several modules, `module` is the one to
    take; `python` is the interpreter whose jaxlib prints what is no text.

    Raises:
        shardscope.parsers.errors.ShardscopeError: there is nothing at this path, or it is neither HLO nor MLIR.
    """
    from shardscope.api import load_report

    return load_report(file, module, python)


def assert_collectives(
    function: Callable[..., Any] | Report,
    /,
    *args: Any,
    all_reduce: Allowed | None = None,
    reduce_scatter: Allowed | None = None,
    all_gather: Allowed | None = None,
    all_to_all: Allowed | None = None,
    collective_permute: Allowed | None = None,
    collective_broadcast: Allowed | None = None,
    ragged_all_to_all: Allowed | None = None,
    send_recv: Allowed | None = None,
    **kwargs: Any,
) -> Report:
    """Fail unless the compiled program of a call has just these collectives; kinds that are not named are not counted.

        assert_collectives(step, params, batch, all_reduce={"y": 1}, all_gather=0)

    Counted are the collectives in the text of the optimized program: one in a loop once, and those that the compiler
    combined as one. Gives the report; a report that there is already may stand in place of function and arguments.

    Raises:
        AssertionError: there are others; it lists them, with their lines in the source and what causes them.
    """
    from shardscope.api import check_collectives

    expected = {
        "all-reduce": all_reduce,
        "reduce-scatter": reduce_scatter,
        "all-gather": all_gather,
        "all-to-all": all_to_all,
        "collective-permute": collective_permute,
        "collective-broadcast": collective_broadcast,
        "ragged-all-to-all": ragged_all_to_all,
        "send-recv": send_recv,
    }
    return check_collectives(function, args, kwargs, {kind: n for kind, n in expected.items() if n is not None})


def assert_no_implicit_communication(function: Callable[..., Any] | Report, /, *args: Any, **kwargs: Any) -> Report:
    """Fail if the compiled program of a call has a collective that its source does not request.

    Gives the report; a report that there is already may stand in place of function and arguments.

    Raises:
        AssertionError: there are; it lists them, with their lines in the source and what causes them.
    """
    from shardscope.api import check_no_implicit

    return check_no_implicit(function, args, kwargs)
