"""What a person reads has the terms of JAX, XLA and Shardy, and none of the words that these have terms for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

AVOIDED = re.compile(
    r"\b(asked for|as asked|not asked|(?:is|are|not|be) cut\b(?! off)|cut (?:along|differently)|nobody (?:wrote|asked)"
    r"|tells?|told"
    r"|mends?|mending|mended|so bad|of yours|did not trace|made-up|adds? up|made up inputs|each time|by itself"
    r"|divides the work|as it runs there|suppressions of nothing|what is there|the whole of it|line of yours)\b",
    re.IGNORECASE,
)
"""The left column of the glossary, as far as it is unmistakable."""

PAGES = (
    "README.md",
    *(f"docs/{page}.md" for page in ("api", "check", "commands", "cost", "diff", "findings", "reading")),
)
PAGES += tuple(f"docs/{page}.md" for page in ("report-json", "shardings", "targets", "values"))
CODE = ("shardscope", "inspector/render", "inspector/communication", "inspector/check")
"""Folders whose texts are printed for people."""

QUOTED: dict[str, tuple[str, ...]] = {}
"""Words that quote JAX, by the file that does."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a file that are no docstrings, and the docstrings that `--help` prints."""
    tree = ast.parse(path.read_text())
    statements = {id(each.value) for node in ast.walk(tree) for each in _body(node) if isinstance(each, ast.Expr)}
    if path.parent.name == "commands" and (shown := ast.get_docstring(tree)):
        yield 1, shown
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.lineno, node.value


def _body(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else []


def avoided(name: str, line: int, text: str) -> Iterator[str]:
    for match in AVOIDED.finditer(text):
        if match[0].lower() not in QUOTED.get(name, ()):
            yield f"{name}:{line + text.count(chr(10), 0, match.start())}: {match[0]!r}"


@pytest.mark.parametrize("folder", CODE)
def test_messages(folder: str) -> None:
    files = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / folder).rglob("*.py"))}
    found = [each for name, path in files.items() for text in texts(path) for each in avoided(name, *text)]
    assert not found


@pytest.mark.parametrize("page", PAGES)
def test_documentation(page: str) -> None:
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), (ROOT / page).read_text(), flags=re.DOTALL)
    assert not list(avoided(page, 1, text))


RELATIVE = frozenset({"What", "Whatever", "Whether", "Which", "Those", "Who", "Of", "Where", "How", "Why", "When"})
"""First words of docstrings that are clauses: a noun, or what a function returns or does, comes first."""


@pytest.mark.once
@pytest.mark.parametrize("folder", ["inspector", "parsers", "tui", "shardscope", "samples"])
def test_docstrings(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if (re.match(r"\w+", node.value.value.lstrip()) or [""])[0] in RELATIVE
    ]
    assert not found
