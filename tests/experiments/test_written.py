"""Expressions that are followed through the user's names and functions."""

from __future__ import annotations

import ast

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.findings.fixes.specs import follow
from shardscope.inspector.ir.program import Program
from shardscope.parsers.source import Source

pytestmark = pytest.mark.once

TEXT = b"""
def specs():
    return {"w": P("x"), "b": P()}
def again(tree):
    return again(tree)
chosen = specs()
also = chosen
whole = P()
"""


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("also", "P('x')"),
        ("specs()", "P('x')"),
        ("again(also)", "again(also)"),
        ("whole", "whole"),
        ("unknown", "unknown"),
    ],
)
def test_where_a_path_leads(text: str, end: str) -> None:
    program = Program(Capture(script_text=Source("script.py", TEXT)))
    node = ast.parse(text, mode="eval").body
    found, _ = follow(program, "script.py", node, ["['w']"])
    assert ast.unparse(found) == end
