"""All that rules say, in another alphabet: what still works reads no sentence and no label."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from shardscope.inspector import findings, report
from shardscope.inspector.findings import judge, rules
from shardscope.inspector.findings.rule import Rule
from shardscope.inspector.report import (
    BoundaryOrigin,
    ConstraintOrigin,
    Finding,
    FindingPlace,
    Fix,
    MovedDimension,
    ShardMapOrigin,
    ValueDimension,
    ValueName,
)

WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
"""ASCII in the letters of East Asian typography: `ａｌｌ－ｒｅｄｕｃｅ`."""

PROSE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]|^ [a-z]+|^[a-z]+ $")
"""What is said, and not a name: two words one after the other, or a word with a blank at an end of the text."""

SAID = {Finding: ("message", "evidence"), FindingPlace: ("what",), Fix: ("title",)}
"""Texts for people in the values that rules give."""

SPELLED = (MovedDimension, ValueDimension, ValueName, BoundaryOrigin, ShardMapOrigin, ConstraintOrigin)
"""Values that rules take, and put into their sentences."""


def reword(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every rule say all that it says in other words, and each time in others."""
    modules = [module for name, module in sys.modules.items() if name.startswith(findings.__name__)]
    for module in (report, *modules):
        for name, other in _other_words(vars(module)).items():
            monkeypatch.setattr(module, name, other)
    for kind in SPELLED:
        monkeypatch.setattr(kind, "__str__", lambda self, spelled=kind.__str__: wide(spelled(self)))
    monkeypatch.setattr(judge, "RULES", tuple(map(_reworded, rules.RULES)))


def wide(text: object) -> object:
    """A text, or a tuple of them, in other letters."""
    return text.translate(WIDE) if isinstance(text, str) else tuple(map(wide, text))  # type: ignore[call-overload]


def _other_words(names: Mapping[str, object]) -> dict[str, object]:
    """What makes values in a module, by name, so that they say the same in other words."""
    makers = {id(make): partial(_saying_otherwise, make) for make in (*SAID, replace)}
    return {name: makers[id(value)] for name, value in names.items() if id(value) in makers}


def _saying_otherwise(make: Callable[..., Any], *given: object, **named: object) -> object:
    made = make(*given, **named)
    said = SAID.get(type(made), ())
    return replace(made, **{name: wide(getattr(made, name)) for name in said}) if said else made


def _reworded(rule: Rule) -> Rule:
    """The rule of the same module with its sentences rewritten, whatever they are there for."""
    module = importlib.import_module(rule.check.__module__)
    tree = _Rewriting().visit(ast.parse(Path(str(module.__file__)).read_bytes()))
    other = ModuleType(module.__name__)
    other.__dict__.update(__package__=module.__package__, __file__=module.__file__)
    exec(compile(ast.fix_missing_locations(tree), str(module.__file__), "exec"), other.__dict__)
    other.__dict__.update(_other_words(vars(other)))
    found: Rule = other.RULE
    assert found.finds != rule.finds
    return found


class _Rewriting(ast.NodeTransformer):
    """Of one sentence that stands in two places, two others; patterns are for the texts of compilers, and stay."""

    def __init__(self) -> None:
        self.numbers: Iterator[int] = count()

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and PROSE.search(node.value):
            return ast.Constant(f"{wide(node.value)}№{next(self.numbers)}")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node.func:
            case ast.Attribute(value=ast.Name(id="re"), attr="compile"):
                return node
        return self.generic_visit(node)
