"""The user's own words for a call, so that a fix can be written in them."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import lru_cache

from ....parsers.source import Source
from ...capture.model import Capture
from ...report import SourcePosition
from ...source_files import source_of


def call_at(capture: Capture, place: SourcePosition, functions: Collection[str]) -> ast.Call | None:
    """The innermost call of one of these functions, by its last name, at a place; None where there is not just one."""
    found = call_in(capture, place, functions)
    return None if found is None else found[1]


def call_in(capture: Capture, place: SourcePosition, functions: Collection[str]) -> tuple[str, ast.Call] | None:
    """The same call, and the file that it is in."""
    for frame in place.stack:
        source = source_of(capture, frame.file)
        here = [call for call in _calls(source).get(frame.line, ()) if name_of(call) in functions] if source else []
        exact = [call for call in here if call.col_offset == frame.column]
        if len(exact or here) == 1:
            return frame.file, (exact or here)[0]
    return None


def renamed(call: ast.Call, function: str) -> str:
    """How the user would name another function of the same module: `lax.psum` → `lax.psum_scatter`."""
    return f"{ast.unparse(call.func.value)}.{function}" if isinstance(call.func, ast.Attribute) else function


def name_of(call: ast.Call) -> str:
    """The last name of the function that is called."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


@lru_cache(maxsize=16)
def tree_of(source: Source) -> ast.Module:
    """The syntax of a file; an empty one of a text that is no Python."""
    try:
        return ast.parse(source.data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@lru_cache(maxsize=16)
def _calls(source: Source) -> dict[int, list[ast.Call]]:
    """The calls of a file by their first lines."""
    found: dict[int, list[ast.Call]] = {}
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Call):
            found.setdefault(node.lineno, []).append(node)
    return found
