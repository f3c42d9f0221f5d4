"""The user's script, module or notebook, run as Python runs it: unmodified, as `__main__`."""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple, NoReturn

from ...protocol.request import UsageError
from .. import failures, patches
from .observed_source import compiled, script_of
from .resolve import package_root

Capture = Callable[..., None]
"""Capture a function, with its arguments if they are known."""


class Runnable(NamedTuple):
    """The text to run, the file that it is in, and the spec of a module that is run like `python -m`."""

    file: str
    text: bytes
    spec: ModuleSpec | None = None


def runnable(script: Path | None, module: str) -> Runnable:
    """The script, or a module by its name, or in a package the module that a file is.

    Raises:
        UsageError: there is no such module, or it has no source.
    """
    if script is not None and script.suffix == ".ipynb":
        try:
            return Runnable(str(script), script_of(patches.text_of(script)))
        except ValueError as error:
            raise UsageError(f"{script} is not a notebook: {error}") from None
    if script is not None and (root := package_root(script)) == script.parent:
        return Runnable(str(script), patches.text_of(script))
    if script is not None:
        module = ".".join(script.relative_to(root).with_suffix("").parts)
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise UsageError(f"there is no module {module!r}", "a file is named with its .py")
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(f"the module {module} has no Python source")
    return Runnable(spec.origin, patches.text_of(spec.origin), spec)


def run(program: Runnable, name: str) -> None:
    """Run it as `__main__`, with the calls of `name` observed in it and in the user's modules that it imports.

    A script may end with `sys.exit()`; what else it raises passes through.
    """
    main = ModuleType("__main__")
    main.__file__ = program.file
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    if program.file.endswith(".ipynb"):
        main.__dict__.update(display=_Notebook(), get_ipython=_Notebook())
    if program.spec is not None:
        main.__spec__, main.__package__ = program.spec, program.spec.parent
        main.__loader__ = program.spec.loader
    sys.modules["__main__"] = main
    patches.quote(program.text, program.file)
    if name:
        patches.compile_with(lambda text, file: _observed(text, file, name))
    pid, leave = os.getpid(), os._exit

    def exit_now(status: int) -> NoReturn:
        """End the script, as `os._exit` does; a process that it forked truly."""
        if os.getpid() == pid:
            raise SystemExit(status)
        leave(status)

    os._exit = exit_now
    try:
        exec(compiled(program.text, program.file, name), vars(main))
    except SystemExit as ending:
        if ending.code not in (None, 0):
            raise
    finally:
        os._exit = leave


class _Notebook:
    """Objects that IPython gives a notebook; here they do nothing."""

    def __getattr__(self, name: str) -> _Notebook:
        return self

    def __call__(self, *args: object, **kwargs: object) -> _Notebook:
        return self


def _observed(text: bytes, file: str, name: str) -> CodeType | None:
    if name.encode() not in text or not failures.is_users(file):
        return None
    try:
        return compiled(text, file, name)
    except (SyntaxError, ValueError):
        return None
