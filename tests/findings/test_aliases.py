"""Calls by another name: what they are read as is what Python evaluates the name to."""

from __future__ import annotations

import ast

import pytest
from shardscope.inspector.findings.fixes.calls import resolve

FILE = """
import jax
global mesh
from functools import partial
from jax import lax
from jax.lax import psum, pmean as mean, with_sharding_constraint as wsc
constrain = jax.lax.with_sharding_constraint
over_x = partial(lax.psum, axis_name="x")
twice = lax.psum
twice = lax.pmax
own = lambda x: x
"""


@pytest.mark.parametrize("name", ["psum", "mean", "wsc", "constrain", "twice", "own"])
def test_another_name(name: str) -> None:
    (call,) = calls(f"{FILE}\n{name}(value, 'x')")
    known: dict[str, object] = {}
    exec(FILE, known)
    assert eval(ast.unparse(call.func), dict(known)) is known[name]
    assert ("." in ast.unparse(call.func)) == (name not in ("twice", "own"))
    assert call.func.col_offset == 0


def test_a_partial_gives_its_keywords() -> None:
    (call,) = calls(f"{FILE}\nover_x(value)")
    assert ast.unparse(call) == "lax.psum(value, axis_name='x')"


def calls(text: str) -> list[ast.Call]:
    values = (each.value for each in resolve(ast.parse(text)).body if isinstance(each, ast.Expr))
    return [each for each in values if isinstance(each, ast.Call)]
