"""Parameters that are made whole where a function uses them, as edits of that function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..findings.fixes.calls import captured_name, imports, nodes_of, user_files
from ..findings.fixes.edits import Edits, extent, together, wrapped
from ..findings.fixes.specs import sharding_text
from ..ir.name_scopes import common_start, steps_of
from ..ir.program import Program
from ..report import Edit, Report

CONSTRAIN = "with_sharding_constraint"


def tree_of(names: Sequence[str]) -> str:
    """The tree that some paths are of, as an expression: `state.params` of `state.params['w']`."""
    return "".join(common_start((_root(name), *steps_of(name)) for name in names))


def _root(name: str) -> str:
    return name[: len(name) - sum(map(len, steps_of(name)))]


def where_used(report: Report, names: Sequence[str], spec: str) -> Iterator[Edits]:
    """A tree of parameters in a constraint where the captured function first reads it, or wherever it does.

    A tree that is a parameter of the function itself is constrained in a statement of its own, before all others.
    """
    program, tree = report.program, tree_of(names)
    name = captured_name(program)
    for file in user_files(program):
        constrain = constraint_in(program, file)
        for node in nodes_of(program, file) if constrain else ():
            if not isinstance(node, ast.FunctionDef) or node.name != name:
                continue
            taken = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            reads = [each for each in ast.walk(node) if isinstance(each, ast.expr) and _reads(each, tree)]
            sharding = sharding_text(program, (file, reads[0]), spec) if reads else ""
            if not sharding or tree.partition(".")[0].partition("[")[0] not in taken:
                continue
            if tree in taken:
                first = _first_statement(node)
                at = (first.lineno, first.col_offset)
                text = f"{tree} = {constrain}({tree}, {sharding})\n{' ' * first.col_offset}"
                yield (Edit(file, *at, *at, text),) if first.lineno > node.lineno else ()
                continue
            own = [wrapped((file, each), f"{constrain}(", f", {sharding})") for each in sorted(reads, key=extent)]
            yield from dict.fromkeys((own[0], together(*own)))


def _reads(node: ast.expr, tree: str) -> bool:
    is_read = isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load)
    return is_read and ast.unparse(node) == tree


def _first_statement(function: ast.FunctionDef) -> ast.stmt:
    first, *others = function.body
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return others[0] if is_text and others else first


def constraint_in(program: Program, file: str) -> str:
    """The name that a file has for a constraint; empty where it imports nothing for that."""
    source = program.file(file)
    spelled = ((CONSTRAIN, CONSTRAIN), ("jax", f"jax.lax.{CONSTRAIN}"), ("lax", f"lax.{CONSTRAIN}"))
    return next((text for imported, text in spelled if source is not None and imports(source, imported)), "")
