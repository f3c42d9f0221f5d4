"""Calls in functions, by their places."""

from __future__ import annotations

import ast
from pathlib import Path
from traceback import extract_stack
from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Source
from shardscope.inspector.findings.fixes.calls import call_to_leave_out, holds, other_calls
from shardscope.inspector.ir.program import Program
from shardscope.inspector.report import Edit, Fix, SourcePosition
from shardscope.parsers.source import Frame

NESTED = """
@first(inner(1), lambda v: second(v))
def outer(x=default()):
    def within(y): return third(y); fourth(y)
    return within(x) + (lambda z: fifth(z))(x)
sixth(outer(2)); (lambda: seventh())()
"""


@pytest.mark.parametrize("text", [NESTED, Path(__file__).read_text()])
def test_a_call_is_in_a_function_as_its_node_is(text: str) -> None:
    nodes = list(ast.walk(ast.parse(text)))
    for body in nodes:
        if isinstance(body, ast.FunctionDef | ast.Lambda):
            inside = set(map(id, ast.walk(body)))
            for call in nodes:
                if isinstance(call, ast.Call):
                    assert holds(body, call) == (id(call) in inside), ast.unparse(call)


SAME_NAME = """\
calls = []
def gather(x):
    def step(g):
        calls.append("inner") or g  # edited
        return g
    return step(x)
def total(x):
    calls.append("module")  # edited
    return x
def other(step, x):
    return step(x) + (lambda total: total(x))(step)
def one(x):
    total = lambda v: v
    return total(x)
def two(x):
    def inner():
        return total(x) + gather(x)
    return inner() + total(x)
def three(x):
    return other(abs, x) + one(x) + two(x)
three(1)
"""


@pytest.mark.parametrize(("log", "kind"), [("inner", "step"), ("module", "total")])
def test_other_calls_are_those_that_python_makes(log: str, kind: str) -> None:
    made: dict[str, list[str]] = {}
    exec(SAME_NAME, made)
    program = Program(Capture(script_text=Source("same.py", SAME_NAME.encode())))
    (line,) = (number for number, text in enumerate(SAME_NAME.splitlines(), 1) if f'"{log}"' in text)
    fix = Fix("leave it out", (Edit("same.py", line, 8, line, 9, ""),))
    reached_from_elsewhere = [(Frame("same.py", "", line), Frame("main.py", "", 1))]
    count = made["calls"].count(log)
    assert f"{count} other call" in other_calls(program, fix, reached_from_elsewhere)
    without_a_caller = other_calls(program, fix, [(Frame("same.py", "", line),)])
    assert without_a_caller == (f"; that changes {count - 1} other call of {kind}" if count > 1 else "")


HELPER = """\
log = []
def psum(x):
    log.append(tuple((f.lineno, f.name) for f in reversed(extract_stack()[:-1]) if f.filename == "help.py"))
    return x
def total(x):
    return psum(x)
first = total(1)

second = (lambda v: total(v))(2)
"""


def test_of_a_helper_that_does_nothing_else_its_own_call_is_left_out() -> None:
    """Stacks are those that Python has; the first call is in the line behind the helper's last."""
    made: dict[str, Any] = {"extract_stack": extract_stack}
    exec(compile(HELPER, "help.py", "exec"), made)
    program = Program(Capture(script_text=Source("help.py", HELPER.encode())))
    lines = []
    for stack in made["log"]:
        place = SourcePosition.exact(tuple(Frame("help.py", name, line) for line, name in stack))
        found = call_to_leave_out(program, place, ("psum",))
        assert found is not None
        lines.append((ast.unparse(found[1]), found[1].lineno))
    assert lines == [("total(1)", 7), ("total(v)", 9)]
