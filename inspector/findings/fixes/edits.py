"""Small changes of the user's source, as edits; empty where a change cannot be written."""

from __future__ import annotations

import ast
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ....parsers.python import expression_in
from ...ir.program import Program
from ...report import Edit, Fix, SourcePosition
from .calls import Body, Call, around, binds, call_at, call_to_leave_out, imports, lines_of, nodes_of, tree_of

Edits = tuple[Edit, ...]
Placed = tuple[str, ast.expr]
"""An expression, and the file that it is in."""

BARE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant, ast.List, ast.Dict)
"""Expressions that mean the same wherever they stand."""

STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)


def together(*parts: Edits) -> Edits:
    """All of several changes, each edit once; none where one of them cannot be written.

    Texts inserted at one place are one edit, so that edits can be applied in any order.
    """
    texts: dict[Edit, str] = {}
    for edit in dict.fromkeys(edit for part in parts for edit in part) if all(parts) else ():
        is_inserted = (edit.line, edit.column) == (edit.end_line, edit.end_column)
        at = replace(edit, text="") if is_inserted else edit
        texts[at] = texts.get(at, "") + edit.text if is_inserted else edit.text
    return tuple(replace(at, text=text) for at, text in texts.items())


def overlap(one: Edits, other: Edits) -> bool:
    """Return whether some edits of both change, or insert at, the same place of a file in different ways."""
    return any(
        os.path.normpath(a.file) == os.path.normpath(b.file)
        and (a.line, a.column) <= (b.end_line, b.end_column)
        and (b.line, b.column) <= (a.end_line, a.end_column)
        for a in one
        for b in other
        if a != b
    )


def instead(placed: Placed, text: str) -> Edits:
    """Another text in the place of an expression."""
    file, node = placed
    return (Edit(file, *extent(node), text),)


def rewritten(program: Program, call: Call | None, text: str) -> Edits:
    """A text made of the first argument of a call in the place of the call, with what it takes to name `lax`."""
    return () if call is None or not call[1].args else (*_import_of_lax(program, call[0]), *instead(call, text))


def _import_of_lax(program: Program, file: str) -> Edits:
    """Return an import of `lax`, before that of functions from it, in a file that has none."""
    source = program.file(file)
    if source is None or imports(source, "lax") or imports(source, "jax"):
        return ()
    nodes = (node for node in tree_of(source).body if isinstance(node, ast.ImportFrom) and node.module == "jax.lax")
    return tuple(Edit(file, node.lineno, 0, node.lineno, 0, "from jax import lax\n") for node in list(nodes)[:1])


def parenthesized(expression: str) -> str:
    """An expression that may be part of any other."""
    return expression if isinstance(expression_in(expression), BARE) else f"({expression})"


def wrapped(placed: Placed, before: str, after: str) -> Edits:
    """An expression with a text before it and one after it."""
    file, node = placed
    start, end = extent(node)[:2], extent(node)[2:]
    return (Edit(file, *start, *start, before), Edit(file, *end, *end, after))


def as_operand(placed: Placed, after: str) -> Edits:
    """An expression with what follows it bound to all of it: `(a + b)[None]`."""
    bare = isinstance(placed[1], BARE)
    return wrapped(placed, "" if bare else "(", after if bare else f"){after}")


def without_call(program: Program, call: Call | None) -> Edits:
    """`f(x, …)`, or `x.f(axis=…)`, as `x`; `x = f(x, …)` as nothing."""
    operand = None if call is None else _operand(call[1])
    if call is None or operand is None:
        return ()
    file, node = call
    if (statement := _statement_of_itself(program, call, operand)) is not None:
        return (Edit(file, statement.lineno, 0, (statement.end_lineno or statement.lineno) + 1, 0, ""),)
    bare = isinstance(operand, BARE) or (_stands_alone(program, call) and operand.lineno == operand.end_lineno)
    left, right = ("", "") if bare else ("(", ")")
    return (
        Edit(file, *extent(node)[:2], *extent(operand)[:2], left),
        Edit(file, *extent(operand)[2:], *extent(node)[2:], right),
    )


def without_calls(program: Program, places: Iterable[SourcePosition], functions: Collection[str]) -> Edits:
    """The calls of these functions at several places, each as its operand."""
    return together(*(without_call(program, call_at(program, place, functions)) for place in places))


def left_out(program: Program, places: Iterable[SourcePosition], functions: Collection[str]) -> list[Fix]:
    """The calls of these functions, or of helpers that do nothing else, each left out by itself."""
    calls = dict.fromkeys(call_to_leave_out(program, place, functions) for place in dict.fromkeys(places))
    return [Fix(f"leave out {ast.unparse(call[1])}", without_call(program, call)) for call in calls if call is not None]


def with_keyword(call: Call | None, name: str, value: str) -> Edits:
    """`f(x, …)` as `f(x, …, name=value)`, unless it has that keyword."""
    if call is None or not (call[1].args or call[1].keywords) or name in {keyword.arg for keyword in call[1].keywords}:
        return ()
    end = max(extent(each)[2:] for each in (*call[1].args, *(each.value for each in call[1].keywords)))
    return (Edit(call[0], *end, *end, f", {name}={value}"),)


def fewer_in_keyword(program: Program, files: Iterable[str], name: str) -> Iterator[Edits]:
    """Each keyword argument of that name that is a number or a tuple of them, with one of these left out."""
    for file, keyword, now in _keywords_of(program, files):
        numbers = now.elts if isinstance(now, ast.Tuple | ast.List) else [now]
        if keyword == name and all(isinstance(number, ast.Constant) for number in numbers):
            for left_out in numbers:
                rest = ast.Tuple([number for number in numbers if number is not left_out], ast.Load())
                yield instead((file, now), ast.unparse(rest))


def keyword_changes(program: Program, files: Iterable[str], names: Collection[str], value: str) -> Iterator[Edits]:
    """Each keyword argument of such a name, with a value that it does not have, but for functions that were not run."""
    for file, keyword, now in _keywords_of(program, files):
        if keyword in names and ast.unparse(now) != value and _is_run(program, file, now):
            yield instead((file, now), value)


def _is_run(program: Program, file: str, node: ast.AST) -> bool:
    """Return whether the function that contains or is decorated by an expression is in the traced program."""
    frames = () if program.jaxpr is None else program.jaxpr.program.frames
    lines = {frame.line for frame in frames if frame.file == file}
    functions = (each for each in around(program, (file, node)) if isinstance(each, ast.FunctionDef))
    function = next(functions, None)
    return function is None or not lines or any(line in lines for line in lines_of(function))


def before_the_loop(program: Program, found: Call | None) -> Edits:
    """A call that gives the same in every iteration, made once: a name for it, assigned before the loop's body.

    The body is the innermost function around the call. Nothing where the call uses what that function is given or
    makes itself, or where the function stands in no other one.
    """
    source = None if found is None else program.file(found[0])
    if found is None or source is None:
        return ()
    file, call = found
    path = [*reversed([*around(program, (found[0], call))]), call]
    inner = max((number for number, node in enumerate(path) if isinstance(node, Body)), default=0)
    outer = [node for node in path[:inner] if isinstance(node, Body)]
    statements = [node for node in path[: inner + 1] if isinstance(node, ast.stmt)]
    if not outer or not isinstance(outer[-1], ast.FunctionDef) or not statements or statements[-1] is outer[-1]:
        return ()
    body, statement = path[inner], statements[-1]
    known = {node.id for node in ast.walk(tree_of(source)) if isinstance(node, ast.Name)}
    if any(isinstance(node, ast.Name) and binds(body, node.id) for node in ast.walk(call)):
        return ()
    name = next(name for number in range(len(known) + 1) if (name := f"before{number or ''}") not in known)
    line = lines_of(statement)[0]
    text = f"{name} = {ast.unparse(call)}\n{' ' * statement.col_offset}"
    return (Edit(file, line, statement.col_offset, line, statement.col_offset, text), *instead(found, name))


def with_permutation(call: Call | None, text: str) -> Edits:
    """Return a ppermute with other pairs; nothing where they are written elsewhere, as in a `partial`."""
    if call is None:
        return ()
    file, node = call
    given = [*node.args[2:3], *(keyword.value for keyword in node.keywords if keyword.arg == "perm")]
    return instead((file, given[0]), text) if given and extent(node)[:2] <= extent(given[0])[:2] else ()


def permutation_text(destinations: Sequence[int]) -> str:
    """The pairs of a permutation of all devices as code, given where each device sends to."""
    size, shift = len(destinations), destinations[0]
    if all(to == (device + shift) % size for device, to in enumerate(destinations)):
        return f"[(i, (i + {shift}) % {size}) for i in range({size})]"
    return repr(list(enumerate(destinations)))


def axes_text(axes: tuple[str, ...]) -> str:
    """Axes as an argument: `'x'`, or `('x', 'y')`."""
    return repr(axes[0]) if len(axes) == 1 else repr(axes)


def extent(node: ast.expr) -> tuple[int, int, int, int]:
    """Line and column of an expression, and those behind it."""
    end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return node.lineno, node.col_offset, *end


def _operand(call: ast.Call) -> ast.expr | None:
    match call:
        case ast.Call(ast.Attribute(value=value), args, keywords) if all(map(_is_number, args)):  # a method
            return value if {keyword.arg for keyword in keywords} <= {"axis"} else None
        case ast.Call(args=[operand, *_]):
            return None if isinstance(operand, ast.Starred) else operand
    return None


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.UnaryOp) or (
        isinstance(node, ast.Tuple | ast.List) and all(map(_is_number, node.elts))
    )


def _stands_alone(program: Program, call: Call) -> bool:
    statement = next(around(program, call), None)
    return isinstance(statement, STATEMENTS) and statement.value is call[1]


def _statement_of_itself(program: Program, call: Call, operand: ast.expr) -> ast.Assign | None:
    """Return the lines `x = f(x)`, where other lines follow in the same block."""
    match list(islice(around(program, call), 2)):
        case [ast.Assign(targets=[ast.Name(id=name)]) as found, block] if found.value is call[1]:
            others = [each for each in getattr(block, "body", ()) if each is not found]
            lines = lines_of(found)
            is_followed = any(each.lineno >= lines.stop for each in others)
            is_alone = not any(each.lineno in lines or each.end_lineno in lines for each in others)
            return found if is_followed and is_alone and isinstance(operand, ast.Name) and operand.id == name else None
    return None


def _keywords_of(program: Program, files: Iterable[str]) -> Iterator[tuple[str, str, ast.expr]]:
    for file in dict.fromkeys(files):
        for node in nodes_of(program, file):
            if isinstance(node, ast.keyword) and node.arg is not None:
                yield file, node.arg, node.value
