"""A reduction of what a loop adds up, moved behind the loop: as edits of the user's source."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ...ir.program import Program
from ...report import Edit, SourcePosition
from ...report.position import own_frames
from .calls import Call, around, call_at, calls_named, function_around, name_of, of_lax, returned_by
from .edits import Edits, together, without_call, wrapped
from .gradients import gradient_call

LOOPS = {"scan": (0, 1), "fori_loop": (2, 3), "while_loop": (1, 2)}
"""The positions of the body and of the initial carry among a loop's arguments."""


class Loop(NamedTuple):
    """The statement with a loop, the loop's call, the expression that its carry is assigned to, and its initial one."""

    statement: ast.Assign
    call: ast.Call
    target: ast.expr
    initial: ast.expr


def after_the_loop(program: Program, reductions: Sequence[Call]) -> Iterator[Edits]:
    """Yield the changes that leave out equal reductions in a loop's body, and make one of what comes out of the loop.

    They may also be in a function that the body calls. The second change also makes the initial carry varying, which
    types demand where they are checked.
    """
    function, *rest = _without_operand(reductions[0][1])
    left_out = together(*(without_call(program, each) for each in reductions))
    calls, names = _in_body(program, reductions)
    if left_out and rest and calls:
        for cast in ("", _cast(program, calls[0], rest[0])):
            yield _moved(program, calls, left_out, (function, *rest), cast, names)


def _in_body(program: Program, reductions: Sequence[Call]) -> tuple[Sequence[Call], set[str]]:
    """The reductions, or the only call of the function that they are in, and the names of its results that need them.

    No names where it has one result; nothing where they are not seen.
    """
    scopes = [each for each in around(program, reductions[0]) if isinstance(each, ast.FunctionDef | ast.Module)]
    function = scopes[0]
    if not isinstance(function, ast.FunctionDef) or any(_loops_of(scopes[1], function)):
        return reductions, set()
    calls, made = calls_named(program, function.name), list(returned_by(function))
    if len(calls) != 1 or len(made) != 1:
        return (), set()
    if not isinstance(made[0], ast.Tuple):
        return calls, set()
    starts = [call for _, call in reductions]
    match next(around(program, calls[0])):
        case ast.Assign(targets=[ast.Tuple(elts=targets)]) if len(targets) == len(made[0].elts):
            derived = _derived(function, starts, ())
            pairs = zip(targets, made[0].elts, strict=True)
            needed = {name_of(target) for target, each in pairs if _uses(each, starts, derived)}
            return calls if needed and all(needed) else (), needed
    return (), set()


def like_it(program: Program, reduction: Call) -> list[Call]:
    """A reduction in a function, and the others there of other operands."""
    file, call = reduction
    body = next((each for each in around(program, reduction) if isinstance(each, ast.FunctionDef)), call)
    others = (each for each in ast.walk(body) if isinstance(each, ast.Call) and each is not call)
    wanted = _without_operand(call)
    return [reduction, *((file, each) for each in others if _without_operand(each) == wanted)]


def _without_operand(call: ast.Call) -> list[str]:
    return [ast.unparse(each) for each in (call.func, *call.args[1:], *call.keywords)]


def own_gradients(program: Program, place: SourcePosition, axes: str) -> Edits:
    """The change that makes each device differentiate by parameters of its own in a loop, and sum up after it."""
    for frame in own_frames(place.stack):
        found = function_around(program, frame.file, frame.line)
        gradient = None if found is None else gradient_call(program, frame.file, found[1])
        if gradient is not None:
            call = (frame.file, gradient[0])
            cast = _cast(program, call, axes)
            edits = wrapped((frame.file, gradient[0].args[0]), f"{cast}, ", ")")
            return _moved(program, [call], edits, (of_lax(program, call, "psum"), axes), cast, {gradient[1]} - {""})
    return ()


def own_operands(program: Program, place: SourcePosition, axes: str) -> Iterator[tuple[str, Edits]]:
    """The names that a loop's body takes from the function around it, each made varying before the loop."""
    loop = call_at(program, place, LOOPS)
    if loop is None:
        return
    scopes = list(around(program, loop))
    function = next((node for node in scopes if isinstance(node, ast.FunctionDef)), None)
    position = LOOPS[name_of(loop[1].func)][0]
    if function is None or len(loop[1].args) <= position:
        return
    statement = scopes[scopes.index(function) - 1]
    body = loop[1].args[position]
    named = body.id if isinstance(body, ast.Name) else ""
    bodies = [node for node in function.body if isinstance(node, ast.FunctionDef) and node.name == named]
    used = {node.id for each in (*bodies, body) for node in ast.walk(each) if isinstance(node, ast.Name)}
    indent = " " * getattr(statement, "col_offset", 0)
    line = getattr(statement, "lineno", 0)
    bound = [each.id for node in function.body if node.lineno < line for each in _bound_by(node)]
    for name in dict.fromkeys((*(each.arg for each in function.args.args), *bound)):
        if name not in used:
            continue
        cast = f"{indent}{name} = {_cast(program, loop, axes)}, {name})\n"
        yield name, (Edit(loop[0], line, 0, line, 0, cast),)


def _bound_by(statement: ast.stmt) -> Iterator[ast.Name]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    yield from (
        node
        for target in targets
        for node in ast.walk(target)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _cast(program: Program, call: Call, axes: str) -> str:
    return f"jax.tree.map(lambda leaf: {of_lax(program, call, 'pcast')}(leaf, {axes}, to='varying')"


def _moved(
    program: Program,
    summands: Sequence[Call],
    inside: Edits,
    reduction: tuple[str, ...],
    cast: str,
    names: Collection[str] = (),
) -> Edits:
    """The edits of a loop's body, with a reduction of those parts of its carry that depend on calls in the body.

    With `names`, on those of the first call's results. `reduction` is its function and all arguments but the first.
    Nothing where the loop is not found.
    """
    file = summands[0][0]
    scopes = [node for node in around(program, summands[0]) if isinstance(node, ast.FunctionDef | ast.Module)]
    body = scopes[0] if scopes else None
    if not isinstance(body, ast.FunctionDef):
        return ()
    loop = next(_loops_of(scopes[1], body), None)
    carry = next((node.value for node in reversed(body.body) if isinstance(node, ast.Return)), None)
    if loop is None or carry is None:
        return ()
    if name_of(loop.call.func) == "scan":
        carry = carry.elts[0] if isinstance(carry, ast.Tuple) and carry.elts else carry
    starts = [] if names else [call for _, call in summands]
    derived = _derived(body, starts, names)
    chosen = [each[1:] for each in _pairs(carry, loop.target, loop.initial) if _uses(each[0], starts, derived)]
    if not chosen:
        return ()
    line, indent = (loop.statement.end_lineno or loop.statement.lineno) + 1, " " * loop.statement.col_offset
    function, *rest = reduction
    targets = [ast.unparse(target) for target, _ in chosen]
    sums = [f"{indent}{target} = {function}({', '.join((target, *rest))})\n" for target in targets]
    casts = [edit for _, first in chosen for edit in (wrapped((file, first), f"{cast}, ", ")") if cast else ())]
    return (*inside, Edit(file, line, 0, line, 0, "".join(sums)), *casts)


def _loops_of(tree: ast.AST, body: ast.FunctionDef) -> Iterator[Loop]:
    """The loops with a function as body whose carry a statement assigns to something."""
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        value, target = statement.value, statement.targets[0]
        is_first = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value == 0
        call = value.value if isinstance(value, ast.Subscript) and is_first else value
        places = LOOPS.get(name_of(call.func)) if isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or places is None or len(call.args) <= max(places):
            continue
        function = call.args[places[0]]
        if not isinstance(function, ast.Name) or function.id != body.name:
            continue
        if name_of(call.func) == "scan" and not is_first:
            if not isinstance(target, ast.Tuple) or not target.elts:
                continue
            target = target.elts[0]
        yield Loop(statement, call, target, call.args[places[1]])


def _pairs(made: ast.expr, target: ast.expr, initial: ast.expr) -> list[tuple[ast.expr, ast.expr, ast.expr]]:
    """Each part of a carry as the body returns it, as it is assigned behind the loop, and before the loop."""
    if isinstance(made, ast.Tuple) and isinstance(target, ast.Tuple) and len(made.elts) == len(target.elts):
        known = initial.elts if isinstance(initial, ast.Tuple) and len(initial.elts) == len(made.elts) else None
        return list(zip(made.elts, target.elts, known or [initial] * len(made.elts), strict=True))
    return [(made, target, initial)]


def _derived(body: ast.FunctionDef, calls: Sequence[ast.AST], names: Collection[str]) -> set[str]:
    """These names, those that a function gives to calls' results, and those of what it makes of all of them."""
    found = set(names)
    for statement in body.body:
        if isinstance(statement, ast.Assign) and _uses(statement.value, calls, found):
            found |= {
                node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)
            }
    return found


def _uses(expression: ast.expr, calls: Sequence[ast.AST], names: set[str]) -> bool:
    return any(node in calls or (isinstance(node, ast.Name) and node.id in names) for node in ast.walk(expression))
