"""Fixes in the user's own names: each name in one is in the source at the places that the fix is about.

Axes of the meshes, paths of arguments and results, and JAX's names are known everywhere.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...parsers.python import expression_in
from ..catalog.spellings import FUNCTIONS
from ..ir.derived import derived
from ..ir.program import SourceFile
from ..report import Finding, Fix, Report
from .fixes.calls import tree_of

WORD = re.compile(r"[^\W\d]\w*")
JAX = frozenset(FUNCTIONS) | set(
    WORD.findall(
        "jax lax jnp numpy np P PartitionSpec NamedSharding shard_map jit grad vmap checkpoint device_put reshard"
        " with_sharding_constraint make_mesh axis_index where broadcast_to tile zeros zeros_like mean result"
        " varying invarying"
    )
)
"""Names of JAX's in the words of fixes; `result` is what a function returns, where it has no name."""

FRAGMENT = re.compile(r"[^\W\d][\w.]*[\[(]|(?<!\w)<\w+>|(?<!\w)'[^'\n]*'")
"""The beginnings of code in a sentence: a call or an element, a function without a name, a string."""
BUILT_IN = {*dir(builtins), *keyword.kwlist}


def grounded(report: Report, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings without fixes whose titles name what is not there; of a program without source nothing is known."""
    names = {axis for mesh in report.meshes for axis, _ in mesh.axes}
    names |= {word for value in report.shardings for word in WORD.findall(value.name)} | JAX | BUILT_IN
    yield from (_grounded(report, found, names) for found in findings)


def _grounded(report: Report, found: Finding, names: set[str]) -> Finding:
    if not found.fixes:
        return found
    known = names | set(WORD.findall(found.subject)) | set(WORD.findall(found.place.what))
    places = {(frame.file, frame.line) for place in (found.place, *found.related) for frame in place.source.stack}

    def is_known(fix: Fix) -> bool:
        source = set(_words(report, places | {(edit.file, edit.line) for edit in fix.edits}))
        words = known | source | {word for edit in fix.edits for word in WORD.findall(edit.text)}
        return not source or set(_named(fix.title)) <= words

    return replace(found, fixes=tuple(filter(is_known, found.fixes)))


def _words(report: Report, places: Iterable[tuple[str, int]]) -> Iterator[str]:
    """The words of the user's files at some lines, or of all of the script: of other functions, only their names."""
    lines: dict[str, set[int]] = {} if report.script is None else {report.script: set()}
    for file, line in places:
        lines.setdefault(file, set()).add(line)
    for file, those in lines.items():
        source = report.program.file(file)
        if source is not None:
            yield from _words_at(source, frozenset(those))


@derived
def _words_at(source: SourceFile, lines: frozenset[int]) -> frozenset[str]:
    hidden: set[int] = set()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines:
            extent = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            hidden |= set() if lines.intersection(extent) else set(extent[1:])
    text = source.text().splitlines()
    return frozenset(word for number, line in enumerate(text, 1) if number not in hidden for word in WORD.findall(line))


def _named(title: str) -> Iterator[str]:
    done = 0
    for start in FRAGMENT.finditer(title):
        if start.start() < done:
            continue
        done = start.end()
        if start[0][0] in "'<":
            yield from WORD.findall(start[0]) if start[0][0] == "'" else [start[0]]
            continue
        done = _end(title, start.end() - 1)
        try:
            tree = expression_in(title[start.start() : done].replace("…", "..."))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=name):
                    yield name
                case ast.Constant(value=str(text)):
                    yield from WORD.findall(text)


def _end(text: str, start: int) -> int:
    """Return where what is opened at an offset is closed, and what directly follows it."""
    depth = 0
    for offset in range(start, len(text)):
        depth += (text[offset] in "([") - (text[offset] in ")]")
        if depth == 0 and not re.match(r"[\[(]|\.\w+", text[offset + 1 :]):
            return offset + 1
    return len(text)
