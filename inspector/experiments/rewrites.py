"""Changes that are no requests, as findings to be tried: state that is donated, what a checkpoint saves, settings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.source import Frame
from ..capture.model import Value
from ..findings.fixes.calls import around, imports, name_of, nodes_of, own_files
from ..findings.fixes.edits import Edits, Placed, instead, with_keyword
from ..findings.fixes.jits import jit_of, with_jit_keyword
from ..findings.fixes.specs import targets_of
from ..findings.rule import Saving, finding
from ..findings.rules import rule_named
from ..findings.support.compiled import in_hlo
from ..ir.name_scopes import Leaf
from ..ir.program import Program
from ..report import Finding, FindingPlace, Fix, Report, SourcePosition
from ..units import format_bytes, known_sum
from .measured import tied
from .switches import switched
from .verdict import LEAST_MEMORY

_CHECKPOINT = re.compile(r"(filter_)?checkpoint|remat")
REPEATED = ("rematted_computation", "/checkpoint/")
POLICIES = ("dots_with_no_batch_dims_saveable", "dots_saveable", "everything_saveable")
"""Policies of checkpoints, that which needs least memory first."""


def rewrites(report: Report) -> Iterator[Finding]:
    """The changes that may be worth trying: nothing says so but the trial."""
    yield from _donated(report)
    yield from _saved(report)
    yield from switched(report)


# Donation


def _donated(report: Report) -> Iterator[Finding]:
    """The arguments that results replace, donated where every call of the function assigns its results to them."""
    rule, jit, peak = rule_named("SS20"), jit_of(report), report.peak
    if rule is None or jit is None or peak is None:
        return
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
    parameters = _parameters(report.program, jit)
    wanted = [root for root in free if root in parameters and _is_reassigned(report.program, jit, parameters, root)]
    size = sum(free[root] for root in wanted)
    edits = _with_donation(jit, parameters, given, wanted)
    if edits and size > LEAST_MEMORY * peak.bytes:
        names = " and ".join(wanted)
        title = f"donate {names}: each call assigns its results to {'them' if len(wanted) > 1 else 'it'}"
        yield finding(
            rule,
            FindingPlace(names, SourcePosition()),
            f"results replace {names}, but {'their' if len(wanted) > 1 else 'its'} memory is not donated",
            confidence="likely",
            evidence=(("memory", f"{format_bytes(size)} per device, held twice"),),
            fixes=(Fix(title, edits),),
            saves=Saving(size),
        )


def _with_donation(jit: Placed, parameters: list[str], given: list[str], wanted: list[str]) -> Edits:
    keywords = {each.arg: each.value for each in jit[1].keywords} if isinstance(jit[1], ast.Call) else {}
    if not wanted or "donate_argnames" in keywords or not set(given) <= set(parameters):
        return ()
    numbers = tuple(sorted(parameters.index(name) for name in (*given, *wanted)))
    text = str(numbers[0]) if len(numbers) == 1 else str(numbers)
    now = keywords.get("donate_argnums")
    return with_jit_keyword(jit, "donate_argnums", text) if now is None else instead((jit[0], now), text)


def _function(program: Program, jit: Placed) -> tuple[set[str], ast.FunctionDef] | None:
    """The function of a jit, and the names by which it is called: also those of what a function returns."""
    file, node = jit
    outer = next(around(program, jit), None)
    called: set[str] = set()
    if isinstance(outer, ast.FunctionDef) and node in outer.decorator_list:
        defined, called = [outer], {outer.name}
    else:
        name = node.args[0] if isinstance(node, ast.Call) and node.args else None
        functions = (each for each in nodes_of(program, file) if isinstance(each, ast.FunctionDef))
        defined = [each for each in functions if isinstance(name, ast.Name) and each.name == name.id]
        called = {each.id for each in targets_of(outer)} if isinstance(outer, ast.Assign) else set()
    if len(defined) != 1:
        return None
    maker = next((each for each in around(program, (file, defined[0])) if isinstance(each, ast.FunctionDef)), None)
    if maker is not None and any(_returns(each, node, called) for each in ast.walk(maker)):
        for each in (each for file in own_files(program) for each in nodes_of(program, file)):
            match each:
                case ast.Assign(value=ast.Call(func=made)) if name_of(made) == maker.name:
                    called |= {target.id for target in targets_of(each)}
    return (called, defined[0]) if called else None


def _returns(statement: ast.AST, jit: ast.expr, names: set[str]) -> bool:
    match statement:
        case ast.Return(value=ast.Name(id=name)):
            return name in names
    return isinstance(statement, ast.Return) and statement.value is jit


def _parameters(program: Program, jit: Placed) -> list[str]:
    found = _function(program, jit)
    return [] if found is None else [each.arg for each in (*found[1].args.posonlyargs, *found[1].args.args)]


def _is_reassigned(program: Program, jit: Placed, parameters: list[str], name: str) -> bool:
    """Return whether each call of the function assigns to what it is given as a parameter, of which no copy is kept."""
    function = _function(program, jit)
    files = dict.fromkeys((jit[0], *own_files(program)))
    calls = [
        (file, node)
        for file in files
        for node in nodes_of(program, file)
        if function is not None and isinstance(node, ast.Call) and name_of(node.func) in function[0]
    ]
    calls = [each for each in calls if isinstance(each[1].func, ast.Name)] or calls  # a method may have the same name
    return bool(calls) and all(_assigns(program, call, parameters.index(name), name) for call in calls)


def _assigns(program: Program, call: tuple[str, ast.Call], number: int, name: str) -> bool:
    file, node = call
    keyword = next((each.value for each in node.keywords if each.arg == name), None)
    given = node.args[number] if number < len(node.args) else keyword
    statement = next(around(program, call), None)
    if given is None or not isinstance(given, ast.Name | ast.Attribute) or not isinstance(statement, ast.Assign):
        return False
    text = ast.unparse(given)
    is_kept = any(
        isinstance(each, ast.Assign) and ast.unparse(each.value) == text and each is not statement
        for each in nodes_of(program, file)
    )
    targets = [part for target in statement.targets for part in (target, *getattr(target, "elts", ()))]
    return text in map(ast.unparse, targets) and not is_kept


# Checkpoints


def _saved(report: Report) -> Iterator[Finding]:
    """Checkpoints that save more, where the backward pass repeats collectives of the forward pass."""
    rule = rule_named("SS23")
    repeated = [each for each in in_hlo(report) if any(part in (each.op_name or "") for part in REPEATED)]
    size = sum((each.wire_bytes or 0) * (each.executions or 1) for each in repeated)
    if rule is None or not size:
        return
    for file in own_files(report.program):
        source = report.program.file(file)
        if source is None or not imports(source, "jax"):
            continue
        for node in nodes_of(report.program, file):
            fixes = [
                Fix(f"save {what} for the backward pass: policy={text}", edits)
                for what, text in _policies(report.program, file)
                for edits in (_with_policy(report.program, (file, node), f"jax.checkpoint_policies.{text}"),)
                if edits
            ]
            if fixes:
                place = fixes[0].edits[0]
                yield finding(
                    rule,
                    FindingPlace("checkpoint", SourcePosition.exact((Frame(file, "", place.line),))),
                    f"the backward pass repeats {len(repeated)} collectives of the forward pass",
                    confidence="likely",
                    evidence=(("repeated", f"{format_bytes(size)} per device and step"),),
                    fixes=tuple(fixes),
                    saves=Saving(size),
                )


def _policies(program: Program, file: str) -> Iterator[tuple[str, str]]:
    names = {
        node.args[1].value
        for node in nodes_of(program, file)
        if isinstance(node, ast.Call) and name_of(node.func) == "checkpoint_name" and len(node.args) > 1
        if isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str)
    }
    if names:
        yield "what has a name", f"save_only_these_names({', '.join(map(repr, sorted(names)))})"
    yield from zip(("products of weights", "all products", "everything"), POLICIES, strict=True)


def _with_policy(program: Program, placed: tuple[str, ast.AST], policy: str) -> Edits:
    """A checkpoint with another policy; nothing of what is no checkpoint, or has that policy."""
    file, node = placed
    match node:
        case ast.Call(args=[first, *_], keywords=keywords) if _CHECKPOINT.fullmatch(name_of(node.func)) or (
            name_of(node.func) == "partial" and _CHECKPOINT.fullmatch(name_of(first))
        ):
            now = next((each.value for each in keywords if each.arg == "policy"), None)
            if now is not None:
                return () if ast.unparse(now) == policy else instead((file, now), policy)
            return with_keyword((file, node), "policy", policy)
        case ast.FunctionDef(decorator_list=decorators):
            source = program.file(file)
            partial = next((name for name in ("partial", "functools") if source and imports(source, name)), "")
            bare = [
                each for each in decorators if not isinstance(each, ast.Call) and _CHECKPOINT.fullmatch(name_of(each))
            ]
            if not bare or not partial:
                return ()
            called = "partial" if partial == "partial" else "functools.partial"
            return instead((file, bare[0]), f"{called}({ast.unparse(bare[0])}, policy={policy})")
    return ()
