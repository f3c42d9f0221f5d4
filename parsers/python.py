"""Python's own syntax trees."""

from __future__ import annotations

import ast
from threading import Lock

_ONE_AT_A_TIME = Lock()


def module_in(text: str | bytes) -> ast.Module:
    """The tree of a file. Raises what `ast.parse` does.

    In one thread at a time: Python 3.11 counts the depth of all threads' trees together, and may raise SystemError.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(text)


def expression_in(text: str) -> ast.expr:
    """The tree of an expression. Raises what `ast.parse` does."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode="eval").body
