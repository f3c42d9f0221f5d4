"""Options of the compiler, as the user hands them to jit."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ...report import Report
from .calls import name_of, nodes_of, own_files
from .edits import Edits, instead, with_keyword

KEYWORD = "compiler_options"


def with_compiler_options(report: Report, options: Mapping[str, object]) -> Edits:
    """The jit of the captured function with these options; nothing where there is not just one, or it has some."""
    subject = report.capture.subject
    if subject is None or report.script is None:
        return ()
    name = subject.function.rpartition(".")[2].rpartition(":")[2]
    files = dict.fromkeys((report.script, *own_files(report.program)))  # a script may only import what it hands on
    found = [edits for file in files for edits in _jits(report, file, name, repr(dict(options)))]
    return found[0] if len(found) == 1 else ()


def _jits(report: Report, file: str, function: str, options: str) -> Iterator[Edits]:
    for node in nodes_of(report.program, file):
        match node:
            case ast.FunctionDef(name=name, decorator_list=decorators) if name == function:
                for decorator in decorators:
                    yield from _decorated(file, decorator, options)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if name == function:
                yield from _called(file, call, options)
            case ast.Return(value=ast.Call(args=[ast.Name(id=name), *_]) as call) if name == function:
                yield from _called(file, call, options)


def _decorated(file: str, decorator: ast.expr, options: str) -> Iterator[Edits]:
    if isinstance(decorator, ast.Call):
        yield from _called(file, decorator, options)
    elif name_of(decorator) == "jit":
        yield instead((file, decorator), f"{ast.unparse(decorator)}({KEYWORD}={options})")


def _called(file: str, call: ast.Call, options: str) -> Iterator[Edits]:
    is_partial = name_of(call.func) == "partial" and bool(call.args) and name_of(call.args[0]) == "jit"
    if is_partial or name_of(call.func) == "jit":
        edits = with_keyword((file, call), KEYWORD, options)
        if edits:
            yield edits
