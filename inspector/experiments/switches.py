"""Statements that have effects on all of a program: a setting of JAX's, and the mesh that is in force."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..findings.fixes.calls import imports, name_of, nodes_of, user_files
from ..findings.fixes.edits import extent, instead
from ..findings.fixes.specs import MESHES, value_of
from ..findings.rules import suspect
from ..ir.program import Program
from ..report import Edit, Finding, Fix, Report, SourcePosition
from .measured import measured

PARTITIONABLE = "jax_threefry_partitionable"


def switched(report: Report) -> Iterator[Finding]:
    """Random bits that each device makes all of, and constraints of Flax for which no mesh is set: what to change."""
    program = report.program
    for file in user_files(program):
        source = program.file(file)
        for node in nodes_of(program, file) if source is not None else ():
            for value in _settings(node):
                message = f"random bits are not made in parts: {PARTITIONABLE} is off"
                yield _found(report, (file, value), message, "turn it on, which draws other numbers", "True")
            if source is not None and b"flax" in source.data and imports(source, "jax"):
                for mesh in _entered(program, file, node):
                    message = f"`with {mesh.id}` sets no mesh for Flax, whose constraints then do nothing"
                    yield _found(
                        report, (file, mesh), message, f"enter jax.set_mesh({mesh.id})", f"jax.set_mesh({mesh.id})"
                    )


def _settings(node: ast.AST) -> Iterator[ast.expr]:
    """The value with which a statement turns the setting off: by `jax.config.update`, or as an attribute."""
    match node:
        case ast.Call(args=[ast.Constant(value=name), ast.Constant(value=False) as value]) if name == PARTITIONABLE:
            yield value
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Constant(value=False) as value):
            yield from [value] if name == PARTITIONABLE else []


def _entered(program: Program, file: str, node: ast.AST) -> Iterator[ast.Name]:
    """The names of meshes that a `with` enters."""
    for item in node.items if isinstance(node, ast.With) else ():
        if isinstance(item.context_expr, ast.Name):
            value = value_of(program, file, item.context_expr.id)
            if isinstance(value, ast.Call) and name_of(value.func) in MESHES:
                yield item.context_expr


def _found(report: Report, placed: tuple[str, ast.expr], message: str, title: str, text: str) -> Finding:
    file, node = placed
    source, fix = SourcePosition.of_line(file, node.lineno), Fix(title, instead(placed, text))
    return suspect("SS23", ast.unparse(node), source, message, [fix], expected=measured(report).bytes)


def draws_others(program: Program, edits: Iterable[Edit]) -> bool:
    """Return whether edits turn on a setting with which a program draws other random numbers."""
    return any(
        extent(value) == (each.line, each.column, each.end_line, each.end_column)
        for each in edits
        for node in nodes_of(program, each.file)
        for value in _settings(node)
    )
