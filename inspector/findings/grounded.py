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
STRING = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
LOADED = re.compile(r"(?<![\w.])[^\W\d]\w*+(?!\s*=[^=])")
BOUND = re.compile(r"\b(?:import|def|for|as)\s+(\w+)|\b(\w+)\s*=[^=]|\blambda\s+([^:]*):")
BUILT_IN = {*dir(builtins), *keyword.kwlist}


def grounded(report: Report, found: Finding) -> Finding:
    """The finding without fixes that name what is not there; edits that would use such a name are no edits.

    Of a program without source nothing is known to be missing.
    """
    if not found.fixes:
        return found
    known = {axis for mesh in report.meshes for axis, _ in mesh.axes}
    known |= {word for value in report.shardings for word in WORD.findall(value.name)}
    known |= set(WORD.findall(found.subject)) | set(WORD.findall(found.place.what))
    places = {(frame.file, frame.line) for place in (found.place, *found.related) for frame in place.source.stack}
    fixes = []
    for fix in found.fixes:
        source = set(_words(report, places | {(edit.file, edit.line) for edit in fix.edits}))
        here = known | source
        words = here | JAX | BUILT_IN | {word for edit in fix.edits for word in WORD.findall(edit.text)}
        if not source or set(_named(fix.title)) <= words:
            fixes.append(fix if set(_loaded(fix)) <= here else replace(fix, edits=()))
    return replace(found, fixes=tuple(fixes))


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
            tree = ast.parse(title[start.start() : done].replace("…", "..."), mode="eval")
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


def _loaded(fix: Fix) -> Iterator[str]:
    """The names that the new texts of a fix use, but do not bind."""
    text = STRING.sub("''", "\n".join(edit.text for edit in fix.edits))
    bound = {word for groups in BOUND.findall(text) for group in groups for word in WORD.findall(group)}
    yield from (name for name in LOADED.findall(text) if name not in bound | BUILT_IN)
