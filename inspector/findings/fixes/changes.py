"""Small changes of the user's source at places that the program names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import lru_cache

from ....parsers.source import Source
from ...capture.model import Capture
from ...report import Edit, SourcePosition
from ...source_files import source_of
from .calls import call_in, tree_of

BARE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.List, ast.Dict)
"""Expressions that mean the same wherever they stand."""

STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)


def without_call(capture: Capture, place: SourcePosition, functions: Collection[str]) -> tuple[Edit, ...]:
    """`f(x, …)`, or `x.f(axis=…)`, as `x`; nothing where there is not just one such call."""
    found = call_in(capture, place, functions)
    operand = None if found is None else _operand(found[1])
    if found is None or operand is None:
        return ()
    file, call = found
    bare = isinstance(operand, BARE) or (_stands_alone(capture, file, call) and operand.lineno == operand.end_lineno)
    left, right = ("", "") if bare else ("(", ")")
    start, end = _end(operand)
    return (
        Edit(file, call.lineno, call.col_offset, operand.lineno, operand.col_offset, left),
        Edit(file, start, end, *_end(call), right),
    )


def _operand(call: ast.Call) -> ast.expr | None:
    if call.args:
        return None if isinstance(call.args[0], ast.Starred) else call.args[0]
    is_method = isinstance(call.func, ast.Attribute) and {keyword.arg for keyword in call.keywords} == {"axis"}
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def other_call(capture: Capture, place: SourcePosition, functions: Collection[str], text: str) -> tuple[Edit, ...]:
    """Another expression in the place of a call; nothing where there is not just one, or the text is no expression."""
    found = call_in(capture, place, functions)
    if found is None or not is_expression(text):
        return ()
    file, call = found
    return (Edit(file, call.lineno, call.col_offset, *_end(call), text),)


def wrapped_operand(
    capture: Capture, place: SourcePosition, functions: Collection[str], before: str, after: str
) -> tuple[Edit, ...]:
    """`f(x, …)` as `f(before x after, …)`."""
    found = call_in(capture, place, functions)
    if found is None or not found[1].args:
        return ()
    file, operand = found[0], found[1].args[0]
    line, column = _end(operand)
    start = Edit(file, operand.lineno, operand.col_offset, operand.lineno, operand.col_offset, before)
    return (start, Edit(file, line, column, line, column, after))


def with_keyword(
    capture: Capture, place: SourcePosition, functions: Collection[str], name: str, value: str
) -> tuple[Edit, ...]:
    """`f(x, …)` as `f(x, …, name=value)`; nothing where it has that keyword."""
    found = call_in(capture, place, functions)
    if found is None or not found[1].args or name in {keyword.arg for keyword in found[1].keywords}:
        return ()
    line, column = _end(max((*found[1].args, *(each.value for each in found[1].keywords)), key=_end))
    return (Edit(found[0], line, column, line, column, f", {name}={value}"),)


def fewer_in_keyword(capture: Capture, files: Collection[str], name: str) -> Iterator[Edit]:
    """Each keyword argument of that name that is a number or a tuple of them, with one of these left out."""
    for file in dict.fromkeys(files):
        source = source_of(capture, file)
        for keyword, now in () if source is None else _keywords(source):
            numbers = now.elts if isinstance(now, ast.Tuple | ast.List) else [now]
            if keyword != name or not all(isinstance(number, ast.Constant) for number in numbers):
                continue
            for left_out in numbers:
                rest = ast.Tuple([number for number in numbers if number is not left_out], ast.Load())
                yield Edit(file, now.lineno, now.col_offset, *_end(now), ast.unparse(rest))


def keyword_changes(capture: Capture, files: Collection[str], names: Collection[str], value: str) -> Iterator[Edit]:
    """Each keyword argument of such a name, with a value that it does not have."""
    for file in dict.fromkeys(files):
        source = source_of(capture, file)
        for name, now in () if source is None else _keywords(source):
            if name in names and ast.unparse(now) != value:
                yield Edit(file, now.lineno, now.col_offset, *_end(now), value)


def imports(source: Source, name: str) -> bool:
    """Whether a file has a module or an object by that name from an import."""
    imported = [node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return any((alias.asname or alias.name) == name for node in imported for alias in node.names)


def is_expression(text: str) -> bool:
    """Whether a text is one expression of Python."""
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _stands_alone(capture: Capture, file: str, call: ast.Call) -> bool:
    """Whether a call is all that a statement assigns or returns."""
    source = source_of(capture, file)
    return source is not None and (call.lineno, call.col_offset, *_end(call)) in _values(source)


@lru_cache(maxsize=16)
def _values(source: Source) -> frozenset[tuple[int, int, int, int]]:
    """Where calls stand that are all of what a statement assigns or returns."""
    statements = (node for node in ast.walk(tree_of(source)) if isinstance(node, STATEMENTS))
    calls = (node.value for node in statements if isinstance(node.value, ast.Call))
    return frozenset((call.lineno, call.col_offset, *_end(call)) for call in calls)


@lru_cache(maxsize=16)
def _keywords(source: Source) -> tuple[tuple[str, ast.expr], ...]:
    nodes = (node for node in ast.walk(tree_of(source)) if isinstance(node, ast.keyword))
    return tuple((node.arg, node.value) for node in nodes if node.arg is not None)


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
