"""Arguments that results replace, and whose memory is not donated: the jit with what it takes to donate them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ..capture.model import Value
from ..findings.fixes.calls import around, binds, name_of, nodes_of, own_files
from ..findings.fixes.edits import Edits, Placed, instead
from ..findings.fixes.jits import jit_of, with_jit_keyword
from ..findings.fixes.specs import parts_of_targets, targets_of
from ..findings.rules import suspect
from ..ir.name_scopes import Leaf
from ..ir.program import Program
from ..report import Finding, Fix, Report, SourcePosition
from ..units import format_bytes, known_sum
from .measured import tied
from .verdict import LEAST_MEMORY

FILTER_JIT = "filter_jit"
"""Equinox's jit: it donates all arguments, or all but the first."""

LOADERS = ("device_put", "make_array_from_process_local_data")
"""Functions that make an array of what is read."""


class _Jitted(NamedTuple):
    """The parameters of a jit, how many of them its calls leave out, and these, each with its file."""

    parameters: list[str]
    bound: int
    calls: list[tuple[str, ast.Call]]


def donated(report: Report) -> Iterator[Finding]:
    """The arguments that results replace, donated where every call of the function assigns its results to them."""
    jit, peak = jit_of(report, also=FILTER_JIT), report.peak
    jitted = None if jit is None else _jitted(report.program, jit)
    if jit is None or jitted is None or peak is None:
        return
    free, given = _replaced(report)
    wanted = [root for root in free if root in jitted.parameters and _is_reassigned(report.program, jitted, root)]
    wanted = [root for root in wanted if free[root] > LEAST_MEMORY * sum(free[each] for each in wanted)]
    size = sum(free[root] for root in wanted)
    if not wanted or size <= LEAST_MEMORY * peak.bytes:
        return
    several = len(wanted) > 1
    names = " and ".join(wanted)
    title = f"donate {names}: each call assigns its results to {'them' if several else 'it'}"
    if _is_filtered(jit):
        others = [each for each in jitted.parameters if each not in (*wanted, *given)]
        edits = _with_all(report.program, jit, jitted, others)
        title += f", and {' and '.join(others)} {'are' if len(others) > 1 else 'is'} made for each" if others else ""
    else:
        edits = _with_donation(jit, jitted.parameters, given, wanted)
    if edits:
        message = f"results replace {names}, but {'their' if several else 'its'} memory is not donated"
        made = suspect("SS20", names, SourcePosition(), message, [Fix(title, edits)])
        yield replace(made, evidence=(("memory", f"{format_bytes(size)} per device, held twice"),))


def _replaced(report: Report) -> tuple[dict[str, int], list[str]]:
    """The parameters all of which results replace, with their bytes per device, and those that are donated."""
    arguments = [each for each in report.shardings if each.role == "argument"]
    pairs = tied((each for each in report.shardings if each.role == "output"), arguments)
    replaced = {argument.name for _, argument in pairs}
    local = {each.name: each.local_type for each in arguments}
    roots: dict[str, list[Value]] = {}
    for each in report.capture.arguments:
        roots.setdefault(Leaf(each.path, "").root, []).append(each)
    given = [root for root, leaves in roots.items() if any(leaf.donated for leaf in leaves)]
    free = {
        root: known_sum(None if (type := local.get(leaf.path)) is None else type.bytes for leaf in leaves) or 0
        for root, leaves in roots.items()
        if root not in given and all(leaf.path in replaced or leaf.type.endswith("[]") for leaf in leaves)
    }
    return free, given


def _with_donation(jit: Placed, parameters: list[str], given: list[str], wanted: list[str]) -> Edits:
    keywords = {each.arg: each.value for each in jit[1].keywords} if isinstance(jit[1], ast.Call) else {}
    if not set(given) <= set(parameters):
        return ()
    if (named := keywords.get("donate_argnames")) is not None:
        return instead((jit[0], named), repr(tuple(sorted((*given, *wanted), key=parameters.index))))
    numbers = tuple(sorted(parameters.index(name) for name in (*given, *wanted)))
    text = str(numbers[0]) if len(numbers) == 1 else str(numbers)
    now = keywords.get("donate_argnums")
    return with_jit_keyword(jit, "donate_argnums", text) if now is None else instead((jit[0], now), text)


def _is_filtered(jit: Placed) -> bool:
    node = jit[1]
    return FILTER_JIT in (name_of(node), name_of(node.func) if isinstance(node, ast.Call) else "")


def _with_all(program: Program, jit: Placed, jitted: _Jitted, others: list[str]) -> Edits:
    """Equinox's jit with all arguments donated, or all but the first, if no others are kept by those who call it."""
    kept = [name for name in others if not _is_made_for_each(program, jitted, name)]
    if kept and kept != jitted.parameters[:1]:
        return ()
    text = repr("all-except-first" if kept else "all")
    keywords = jit[1].keywords if isinstance(jit[1], ast.Call) else []
    now = next((each.value for each in keywords if each.arg == "donate"), None)
    return with_jit_keyword(jit, "donate", text) if now is None else instead((jit[0], now), text)


# Those who call it


def _jitted(program: Program, jit: Placed) -> _Jitted | None:
    """The function of a jit; the names by which it is called are also those of what a function returns."""
    file, node = jit
    outer = next(around(program, jit), None)
    called: set[str] = set()
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    is_decorator = isinstance(outer, ast.FunctionDef) and node in outer.decorator_list
    if isinstance(outer, ast.FunctionDef) and is_decorator:
        defined, called = [outer], {outer.name}
    else:
        functions = (each for each in nodes_of(program, file) if isinstance(each, ast.FunctionDef))
        defined = [each for each in functions if given is not None and each.name == name_of(given)]
        called = {name_of(each) for each in outer.targets} if isinstance(outer, ast.Assign) else set()
    if len(defined) != 1:
        return None
    (function,) = defined
    maker = next((each for each in around(program, (file, function)) if isinstance(each, ast.FunctionDef)), None)
    if maker is not None and any(_returns(each, node, called) for each in ast.walk(maker)):
        for each in (each for file in own_files(program) for each in nodes_of(program, file)):
            match each:
                case ast.Assign(value=ast.Call(func=made), targets=targets) if name_of(made) == maker.name:
                    called |= {name_of(target) for target in targets}
    is_method = isinstance(next(around(program, (file, function)), None), ast.ClassDef) and not any(
        name_of(each) == "staticmethod" for each in function.decorator_list
    )
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    bound = int(is_method and is_decorator)
    if not called - {""}:
        return None
    calls = _calls(program, jit, called - {""})
    return _Jitted(parameters[int(is_method and not is_decorator) :], bound, calls)


def _returns(statement: ast.AST, jit: ast.expr, names: set[str]) -> bool:
    match statement:
        case ast.Return(value=ast.Name(id=name)):
            return name in names
    return isinstance(statement, ast.Return) and statement.value is jit


def _calls(program: Program, jit: Placed, names: set[str]) -> list[tuple[str, ast.Call]]:
    files = dict.fromkeys((jit[0], *own_files(program)))
    calls = [
        (file, node)
        for file in files
        for node in nodes_of(program, file)
        if isinstance(node, ast.Call) and name_of(node.func) in names
    ]
    owner = next((each.name for each in around(program, jit) if isinstance(each, ast.ClassDef)), None)
    objects = {
        target.id
        for file in files
        for each in nodes_of(program, file)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call) and name_of(each.value.func) == owner
        for target in targets_of(each)
    }

    def is_sure(call: ast.Call) -> bool:
        match call.func:
            case ast.Attribute(value=ast.Name(id=name)):
                return owner is not None and name in {*objects, "self"}
        return isinstance(call.func, ast.Name)

    return [each for each in calls if is_sure(each[1])] or calls  # a method of another class may have the same name


def _given(call: ast.Call, jitted: _Jitted, name: str) -> ast.expr | None:
    """The expression that a call gives for a parameter."""
    number = jitted.parameters.index(name) - jitted.bound
    keyword = next((each.value for each in call.keywords if each.arg == name), None)
    is_spread = any(isinstance(each, ast.Starred) for each in call.args[: number + 1])
    return call.args[number] if 0 <= number < len(call.args) and not is_spread else keyword


def _is_reassigned(program: Program, jitted: _Jitted, name: str) -> bool:
    """Return whether each call of the function assigns to what it is given as a parameter, of which no copy is kept."""
    calls = jitted.calls
    return bool(calls) and all(_assigns(program, call, _given(call[1], jitted, name)) for call in calls)


def _assigns(program: Program, call: tuple[str, ast.Call], given: ast.expr | None) -> bool:
    statement = next(around(program, call), None)
    if not isinstance(given, ast.Name | ast.Attribute) or not isinstance(statement, ast.Assign):
        return False
    text = ast.unparse(given)
    body = next((each for each in around(program, call) if isinstance(each, ast.FunctionDef | ast.Module)), statement)
    functions = [each for each in ast.walk(body) if isinstance(each, ast.FunctionDef) and each is not body]
    of_others = {inner for each in functions if binds(each, text) for inner in ast.walk(each)}
    is_kept = any(
        isinstance(each, ast.Assign) and ast.unparse(each.value) == text and each is not statement
        for each in ast.walk(body)
        if each not in of_others
    )
    return text in map(ast.unparse, parts_of_targets(statement)) and not is_kept


def _is_made_for_each(program: Program, jitted: _Jitted, name: str) -> bool:
    """Return whether what each call is given is made of what was read, in the same body, and is not used afterwards."""
    calls = jitted.calls
    return bool(calls) and all(_is_made_for(program, call, _given(call[1], jitted, name)) for call in calls)


def _is_made_for(program: Program, call: tuple[str, ast.Call], given: ast.expr | None) -> bool:
    if not isinstance(given, ast.Name):
        return False
    body = next((each for each in around(program, call) if isinstance(each, ast.For | ast.While)), None)
    if body is None:
        return False
    names = [each for each in ast.walk(body) if isinstance(each, ast.Name) and each.id == given.id]
    makers = [
        each.value
        for each in ast.walk(body)
        if isinstance(each, ast.Assign) and any(part in names for part in parts_of_targets(each))
    ]
    uses = [each for each in names if isinstance(each.ctx, ast.Load)]
    return uses == [given] and len(makers) == 1 and _reads(makers[0])


def _reads(maker: ast.expr) -> bool:
    """Return whether an expression makes an array: of a call's value, as an array that exists may stay as it is."""
    match maker:
        case ast.Call(func=function, args=[ast.Call(), *_]):
            return name_of(function) in LOADERS
        case ast.GeneratorExp(elt=made):
            return _reads(made)
    return False
