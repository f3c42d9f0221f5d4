"""Calls in functions, by their places."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from shardscope.inspector.findings.fixes.calls import holds

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
