"""Objects of the script, looked at without running code of theirs, which may raise anything or import a library.

A proxy, such as one that stands for the current request, answers `isinstance` and attributes by that object's own, and
raises where there is none; a module that loads lazily does so when it is asked for any attribute.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Return whether an object's own class, not the one that it claims to have, is one of some types."""
    return issubclass(type(value), kinds)


def attribute(value: object, name: str) -> Any:
    """Return an attribute; None where there is none, or where looking for it fails."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def variable(module: object, name: str) -> Any:
    """Return a variable that a module has at this moment; None where it has none."""
    try:
        return object.__getattribute__(module, "__dict__").get(name)
    except (AttributeError, TypeError):  # anything may be in `sys.modules`
        return None


def closed_over(function: object) -> dict[str, Any]:
    """The variables of enclosing functions that a function uses, by their names, as far as they have a value."""
    found: dict[str, Any] = {}
    names = attribute(attribute(function, "__code__"), "co_freevars") or ()
    for name, cell in zip(names, attribute(function, "__closure__") or (), strict=False):
        with suppress(ValueError):  # nothing was assigned to it
            found[name] = cell.cell_contents
    return found
