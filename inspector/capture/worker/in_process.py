"""Capture a function in the process that has it, for `shardscope.inspect` and notebooks.

What JAX keeps for a whole process, its persistent cache of compilations, is left as it was.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import jax
from jax._src.source_info_util import register_exclusion  # jax.extend adds options of JAX, and calls miss its caches

from ..protocol.events import End, Event, Script
from ..protocol.request import Request
from .channel import Channel
from .inputs import callables
from .inputs.callables import Arguments
from .inputs.resolve import NoProgramError, Resolved
from .recording import record

CACHE = "jax_enable_compilation_cache"


def record_call(
    function: Any,
    arguments: Arguments,
    deliver: Callable[[Event], None],
    workspace: str,
    own: Iterable[str],
    case: str | None = None,
) -> None:
    """Trace, lower and compile a call for the devices that the process has; hand on each event.

    The files in `own` are left out of what JAX tells of where operations come from. What the function, or its
    compilation, raises passes through.
    """
    for path in own:
        _leave_out(path)
    inner, _, _ = callables.unwrap(function)
    name = getattr(inner, "__name__", type(inner).__name__)
    module = sys.modules.get(getattr(inner, "__module__", None) or "", ModuleType("unknown"))
    channel = Channel(deliver)
    file = _file(inspect.unwrap(inner))
    if file is not None and (text := "".join(linecache.getlines(file))):
        channel.send(Script(file, text.encode()))
    request = Request(f"{file or module.__name__}:{name}", target="local", live=False, case=case)
    try:
        with uncached():
            record(request, Resolved(function, name, module, module), channel, workspace, given=arguments)
    except NoProgramError as error:
        raise error.why from None
    channel.send(End(channel.now()))


@contextmanager
def uncached() -> Iterator[None]:
    """Leave out the persistent cache: a compilation that comes from there writes no stages."""
    cached = getattr(jax.config, CACHE, False)
    jax.config.update(CACHE, False)
    try:
        yield
    finally:
        jax.config.update(CACHE, cached)


@functools.cache
def _leave_out(path: str) -> None:
    """Once for each file: JAX keeps a list."""
    register_exclusion(path)


def _file(function: Any) -> str | None:
    """Return the place of its source: a file, or the name that IPython gives to a cell."""
    try:
        return inspect.getsourcefile(function)
    except TypeError:
        return None
