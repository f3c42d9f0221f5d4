"""Calls in the user's source, so that a fix can be written in the user's own words."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from itertools import chain

from ....parsers.python import expression_in, module_in
from ....parsers.source import Frame
from ...catalog.spellings import FUNCTIONS
from ...ir.derived import derived
from ...ir.program import Program, SourceFile
from ...report import Fix, SourcePosition
from ...report.position import own_frames
from ...units import plural

Call = tuple[str, ast.Call]
"""A call, and the file that it is in."""

Body = ast.FunctionDef | ast.Lambda


def call_at(program: Program, place: SourcePosition, functions: Collection[str]) -> Call | None:
    """The innermost call of one of these functions, by its last name, at a place; None where there is not just one."""
    for frame in own_frames(place.stack):
        here = [call for call in calls_on(program, frame.file, frame.line) if name_of(call.func) in functions]
        exact = [call for call in here if call.col_offset == frame.column]
        if len(exact or here) == 1:
            return frame.file, (exact or here)[0]
    return None


def calls_on(program: Program, file: str, line: int) -> list[ast.Call]:
    """The calls that begin on a line of a file."""
    source = program.file(file)
    return [] if source is None else _calls(source).get(line, [])


def operand_text(call: Call | None, otherwise: str) -> str:
    """The first argument of a call as it is written, or another text where there is none."""
    return ast.unparse(call[1].args[0]) if call is not None and call[1].args else otherwise


def of_lax(program: Program, call: Call | None, function: str) -> str:
    """Return how the file of a call names a function of `jax.lax`: `lax.psum` → `lax.psum_scatter`.

    Where it imports no module by which it can, the name that it would have there.
    """
    source = None if call is None else program.file(call[0])
    if call is None or source is None:
        return f"lax.{function}"
    match call[1].func:
        case ast.Attribute(value=ast.Name("lax") | ast.Attribute(attr="lax") as module):
            return f"{ast.unparse(module)}.{function}"
        case ast.Attribute(value=ast.Name(name) as module) if (
            imports(source, name) and name_of(call[1].func) in FUNCTIONS
        ):
            return f"{ast.unparse(module)}.{function}"
    return f"lax.{function}" if imports(source, "lax") or not imports(source, "jax") else f"jax.lax.{function}"


def name_of(function: ast.expr) -> str:
    """The last name of a function."""
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def call_to_leave_out(program: Program, place: SourcePosition, functions: Collection[str]) -> Call | None:
    """The call of one of these functions at a place; of a helper that does nothing else, the call of that."""
    call = call_at(program, place, functions)
    found = None if call is None else function_around(program, call[0], call[1].lineno)
    if call is None or found is None or not _gives(found[1], call[1]):
        return call
    name, body = found
    inside = range(body.lineno, (body.end_lineno or body.lineno) + 1)
    outer = tuple(frame for frame in place.stack if frame.file != call[0] or frame.line not in inside)
    return call_at(program, SourcePosition.exact(outer), (name,)) or call


def call_of_helper(program: Program, place: SourcePosition, first: str) -> Call | None:
    """The call, by another function, of the one that a place is in, whose first argument has that name.

    None where it has no arguments by position.
    """
    frames = own_frames(place.stack)[:2]
    if len(frames) < 2:
        return None
    found, outer = (function_around(program, frame.file, frame.line) for frame in frames)
    if found is None or outer is None or [each.arg for each in found[1].args.args[:1]] != [first]:
        return None
    call = call_at(program, SourcePosition.exact(frames[1:]), found[:1])
    return call if call is not None and call[1].args else None


def other_calls(program: Program, fix: Fix, stacks: Iterable[tuple[Frame, ...]]) -> str:
    """Describe the other calls of functions that a fix edits, except those of these stacks."""
    files = {*own_files(program), *(edit.file for edit in fix.edits)}
    stacks = tuple(stacks)
    known = {(frame.file, frame.line, frame.column) for stack in stacks for frame in stack}
    captured = captured_name(program)
    changed = {found: e.file for e in fix.edits if (found := function_around(program, e.file, e.line)) is not None}
    changes = []
    for (name, body), changed_file in changed.items():
        scopes = tuple(around(program, (changed_file, body)))
        is_method = isinstance(next(iter(scopes), None), ast.ClassDef)
        scope = next((node for node in scopes if isinstance(node, Body)), None)
        calls = [(file, call) for file in files for call in _calls_of(program, file, name, is_method=is_method)]
        outside = [(file, call) for file, call in calls if file != changed_file or not holds(body, call)]
        meant = outside if is_method else [each for each in outside if _means(program, each, name, scope)]
        others = [call for file, call in meant if (file, call.lineno, call.col_offset) not in known]
        outermost = [stack[-1] for stack in stacks if stack]
        is_cut = name == captured or any(
            frame.file == changed_file and frame.line in lines_of(body) for frame in outermost
        )
        if is_cut and others == [call for _, call in meant]:
            others = others[1:]  # JAX recorded no caller: one of these is it
        changes += [f"; that changes {plural(len(others), 'other call')} of {name}"] if others else []
    return "".join(changes)


def _means(program: Program, call: Call, name: str, scope: ast.AST | None) -> bool:
    """Return whether a name is, where a call stands, that of a scope, or of the module without one."""
    for node in around(program, call):
        if node is scope:
            return True
        if isinstance(node, Body) and binds(node, name):
            return False
    return scope is None


def binds(function: ast.AST, name: str) -> bool:
    """Return whether a name is a parameter or a variable of a function itself."""
    waiting = list(ast.iter_child_nodes(function))
    for node in waiting:
        match node:
            case ast.arg(arg=own) | ast.FunctionDef(name=own) | ast.Name(id=own, ctx=ast.Store()) if own == name:
                return True
        if not isinstance(node, Body | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def function_around(program: Program, file: str, line: int) -> tuple[str, Body] | None:
    """The innermost function with a name, decorators included, that a line of a file is in."""
    source = program.file(file)
    found = [] if source is None else [each for each in _functions(source) if line in lines_of(each[1])]
    return min(found, key=lambda each: len(lines_of(each[1])), default=None)


@derived
def _functions(source: SourceFile) -> tuple[tuple[str, Body], ...]:
    return tuple(found for node in ast.walk(tree_of(source)) for found in _named_functions(node))


def _with_decorators(node: ast.stmt | ast.expr) -> tuple[ast.stmt | ast.expr, ...]:
    return (node, *(node.decorator_list if isinstance(node, ast.FunctionDef) else ()))


def lines_of(node: ast.stmt | ast.expr) -> range:
    """The lines of a statement or an expression, with those of decorators."""
    return range(min(each.lineno for each in _with_decorators(node)), (node.end_lineno or node.lineno) + 1)


def holds(body: Body, call: ast.Call) -> bool:
    """Return whether a call is in a function of the same file, or in its decorators."""
    start = min((each.lineno, each.col_offset) for each in _with_decorators(body))
    end = (body.end_lineno or body.lineno, body.end_col_offset or body.col_offset)
    return start <= (call.lineno, call.col_offset) < end


@derived
def _calls_by_name(source: SourceFile) -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for call in chain.from_iterable(_calls(source).values()):
        found.setdefault(name_of(call.func), []).append(call)
    return found


def calls_named(program: Program, name: str) -> list[Call]:
    """The calls of functions and methods of that name in the user's own files."""
    sources = ((file, program.file(file)) for file in own_files(program))
    return [(file, call) for file, source in sources if source for call in _calls_by_name(source).get(name, ())]


def _calls_of(program: Program, file: str, name: str, *, is_method: bool) -> Iterator[ast.Call]:
    """The calls in a file of what may be a function, or a method, of that name."""
    source = program.file(file)
    if source is None:
        return
    for call in _calls_by_name(source).get(name, ()):
        match call.func:
            case ast.Name() if not is_method:
                yield call
            case ast.Attribute(value=owner):
                if is_method is not (isinstance(owner, ast.Name) and imports(source, owner.id)):
                    yield call


@derived
def own_files(program: Program) -> tuple[str, ...]:
    """The user's own files that operations come from, each once."""
    frames = () if program.jaxpr is None else program.jaxpr.program.frames
    return tuple(dict.fromkeys(frame.file for frame in own_frames(tuple(frames))))


def captured_name(program: Program) -> str:
    """The last name of the captured function; empty where none is known."""
    subject = program.capture.subject
    return "" if subject is None else subject.function.rpartition(".")[2].rpartition(":")[2]


def user_files(program: Program) -> list[str]:
    """The script, and the user's own files."""
    subject = program.capture.subject
    return list(dict.fromkeys(filter(None, (None if subject is None else subject.script, *own_files(program)))))


def _gives(body: Body, call: ast.Call) -> bool:
    """Return whether a function does nothing but return a call on its own first parameter."""
    parameters = [*body.args.posonlyargs, *body.args.args]
    returned: ast.AST | None = body.body if isinstance(body, ast.Lambda) else None
    if isinstance(body, ast.FunctionDef):
        statements = [each for each in body.body if not (isinstance(each, ast.Expr) and _is_text(each.value))]
        returned = statements[0].value if len(statements) == 1 and isinstance(statements[0], ast.Return) else None
    operand = call.args[0] if call.args else None
    return returned is call and isinstance(operand, ast.Name) and [operand.id] == [each.arg for each in parameters[:1]]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _named_functions(node: ast.AST) -> Iterator[tuple[str, Body]]:
    match node:
        case ast.FunctionDef(name=name):
            yield name, node
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as body):
            yield name, body


def imports(source: SourceFile, name: str) -> bool:
    """Return whether a file imports a module or an object under that name."""
    return name in _imported(source)


@derived
def _imported(source: SourceFile) -> frozenset[str]:
    found = (node for node in ast.walk(tree_of(source)) if isinstance(node, ast.Import | ast.ImportFrom))
    return frozenset(alias.asname or alias.name for node in found for alias in node.names)


def around(program: Program, call: tuple[str, ast.AST]) -> Iterator[ast.AST]:
    """The syntax that a call stands in, innermost first."""
    source = program.file(call[0])
    parents = {} if source is None else _parents(source)
    node: ast.AST | None = call[1]
    while (node := parents.get(node)) is not None:  # type: ignore[arg-type]
        yield node


def behind(program: Program, statement: tuple[str, ast.stmt]) -> list[ast.AST]:
    """The syntax that follows a statement in the body of its function; nothing of one that is deeper, or in none."""
    body = next(around(program, statement), None)
    if not isinstance(body, ast.FunctionDef):
        return []
    return [each for one in body.body[body.body.index(statement[1]) + 1 :] for each in ast.walk(one)]


@derived
def _parents(source: SourceFile) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree_of(source)) for child in ast.iter_child_nodes(node)}


def quotient_of(program: Program, call: Call | None) -> tuple[str, ast.expr] | None:
    """Return the division of a call's value, if it is written around the call."""
    match next(around(program, call), None) if call is not None else None:
        case ast.BinOp(left=left, op=ast.Div()) as found if call is not None and left is call[1] and call[1].args:
            return call[0], found
    return None


def shard_map_calls(nodes: Iterable[tuple[str, ast.AST]]) -> Iterator[tuple[str, ast.Call]]:
    """The calls of shard_map among the syntax of files, partial ones included."""
    for file, node in nodes:
        if isinstance(node, ast.Call):
            is_partial = name_of(node.func) == "partial" and node.args
            if name_of(node.args[0] if is_partial else node.func) == "shard_map":
                yield file, node


def returned_by(function: ast.AST) -> Iterator[ast.expr]:
    """The values that a function itself returns."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, Body | ast.ClassDef):
            yield from returned_by(node)


def nodes_of(program: Program, file: str) -> Iterator[ast.AST]:
    """The syntax of a file, node by node; nothing of one that is not known."""
    source = program.file(file)
    return iter(()) if source is None else ast.walk(tree_of(source))


def has_keyword(program: Program, name: str) -> bool:
    """Return whether a call in the user's files has a keyword of this name."""
    nodes = (node for file in user_files(program) for node in nodes_of(program, file))
    return any(isinstance(node, ast.keyword) and node.arg == name for node in nodes)


@derived
def tree_of(source: SourceFile) -> ast.Module:
    """The syntax of a file, calls by another name resolved; an empty one of a text that is no Python."""
    try:
        return resolve(module_in(source.data))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


@derived
def _calls(source: SourceFile) -> dict[int, list[ast.Call]]:
    found: dict[int, list[ast.Call]] = {}
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Call):
            found.setdefault(node.lineno, []).append(node)
    return found


def resolve(tree: ast.Module) -> ast.Module:
    """Have each call by another name call the function itself, at the same place in the text."""
    known = _aliases(tree)
    for node in ast.walk(tree) if known else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            function = known[node.func.id]
            if isinstance(function, ast.Call):  # a partial, whose keywords the call has as well
                given = {keyword.arg for keyword in node.keywords}
                node.keywords += [each for each in function.keywords if each.arg not in given]
                function = function.args[0]
            node.func = ast.copy_location(deepcopy(function), node.func)
    return tree


def _aliases(tree: ast.Module) -> dict[str, ast.expr]:
    """Module names that are assigned once, to a function or to a `partial` with keywords alone, with their values."""
    assigned = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    found: dict[str, ast.expr] = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="jax.lax"):
                parent = "lax" if "lax" in modules else "jax.lax" if "jax" in modules else ""
                for alias in node.names if parent else ():
                    found[alias.asname or alias.name] = expression_in(f"{parent}.{alias.name}")
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if assigned[name] == 1 and _is_function(value):
                found[name] = value
    return found


def _is_function(value: ast.expr) -> bool:
    match value:
        case ast.Attribute():
            return True
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[ast.Attribute()]):
            return all(keyword.arg is not None for keyword in value.keywords)
    return False
