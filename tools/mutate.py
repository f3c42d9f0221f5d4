"""Mutation testing: small faults in the product, each of which the tests that reach its line must catch.

    python tools/mutate.py inspector/check --tests tests/inspector/test_check.py [--count 20] [--seed 0]

A mutant changes one comparison, operator, constant, `not`, `and`/`or` or `return` of a file in memory, in a fork of a
process that has imported everything. The tests that run a mutated function are found by running all of them once. What
survives is listed with its line: a test is missing, or the change means nothing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 300

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mod: ast.Mult,
}  # fmt: skip


def mutated(node: ast.AST) -> Iterator[ast.AST]:
    """Each small fault that can be made of one node."""
    changed: Any = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in COMPARISONS:
            changed.ops[0] = COMPARISONS[type(operator)]()
            yield changed
        case ast.BinOp(op=operator) if type(operator) in OPERATORS and not isinstance(node.left, ast.Constant):
            changed.op = OPERATORS[type(operator)]()
            yield changed
        case ast.BoolOp():
            changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield changed
        case ast.UnaryOp(op=ast.Not()):
            yield changed.operand
        case ast.Constant(value=bool() as value):
            changed.value = not value
            yield changed
        case ast.Constant(value=int() as value):
            changed.value = value + 1
            yield changed
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            changed.value = ast.Constant(None)
            yield changed
        case ast.If() | ast.IfExp():
            changed.test = ast.UnaryOp(ast.Not(), changed.test)
            yield changed


def mutants(file: Path) -> Iterator[tuple[str, int, str, str, ast.Module]]:
    """The function around a fault, its line, the line before and after, and the whole module with it."""
    tree = ast.parse(file.read_text())
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for place, node in enumerate(ast.walk(tree)):
        around = _around(node, parents)
        if not around:
            continue
        for fault in mutated(node):
            whole = copy.deepcopy(tree)
            target = next(each for number, each in enumerate(ast.walk(whole)) if number == place)
            found = _Replacing(target, ast.copy_location(fault, node)).visit(whole)
            yield around, node.lineno, ast.unparse(node), ast.unparse(fault), ast.fix_missing_locations(found)  # type: ignore[attr-defined]


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    """The name of the innermost function that a node is executed in; empty for what only describes types."""
    inner, outer = node, parents.get(node)
    while outer is not None:
        if isinstance(outer, ast.FunctionDef):
            return outer.name if inner in outer.body else ""
        if isinstance(outer, (ast.AnnAssign, ast.arg)) and inner is outer.annotation:
            return ""
        inner, outer = outer, parents.get(outer)
    return ""


class _Replacing(ast.NodeTransformer):
    def __init__(self, target: ast.AST, fault: ast.AST) -> None:
        self._target = target
        self._fault = fault

    def visit(self, node: ast.AST) -> Any:
        return self._fault if node is self._target else self.generic_visit(node)


class Reached:
    """A plugin that notes which functions of some files each test calls."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.tests: dict[tuple[str, str], dict[str, float]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Watch the calls of one test, and how long it takes."""
        called: set[tuple[str, str]] = set()

        def note(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename in self.files:
                called.add((code.co_filename, code.co_name))

        started = time.monotonic()
        sys.setprofile(note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            for each in called:
                self.tests.setdefault(each, {})[item.nodeid] = time.monotonic() - started


class Mutating(importlib.abc.MetaPathFinder):
    """Imports one file as a tree says."""

    def __init__(self, file: Path, tree: ast.Module) -> None:
        self._file = str(file)
        self._tree = tree

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Find as others do, and compile the tree where it is the file."""
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                if spec.origin == self._file and spec.loader is not None:
                    code = compile(self._tree, self._file, "exec")
                    spec.loader.get_code = lambda fullname, code=code: code  # type: ignore[attr-defined]
                return spec
        return None


def survives(file: Path, tree: ast.Module, tests: Sequence[str]) -> bool:
    """Whether all of the tests pass with a fault, in a process of their own."""
    child = os.fork()
    if child == 0:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.meta_path.insert(0, Mutating(file, tree))
        status = 1
        try:
            status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests])
        finally:
            os._exit(int(status))
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def reached_by(files: Sequence[Path], tests: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """The tests that call each function, the quickest first; run in a fork, which leaves nothing imported here."""
    import json
    import tempfile

    with tempfile.NamedTemporaryFile("r+") as file:
        child = os.fork()
        if child == 0:
            plugin = Reached({str(path) for path in files})
            status = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[plugin])
            Path(file.name).write_text(json.dumps([[*key, each] for key, each in plugin.tests.items()]))
            os._exit(int(status))
        if os.waitpid(child, 0)[1]:
            raise SystemExit("the tests fail without a fault")
        found = json.loads(Path(file.name).read_text())
    return {(path, name): sorted(times, key=times.__getitem__) for path, name, times in found}


def main() -> int:
    """Mutate; returns 1 where less than nine in ten are caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, help="files or folders of the product")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="where to look for tests")
    parser.add_argument("--count", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    places = [place.resolve() for place in options.places]
    files = sorted(path for place in places for path in ([place] if place.is_file() else place.rglob("*.py")))
    tests = reached_by(files, options.tests)
    known = [(path, *each) for path in files for each in mutants(path) if (str(path), each[0]) in tests]
    chosen = random.Random(options.seed).sample(known, min(options.count, len(known)))
    survivors = 0
    for path, name, line, was, is_now, tree in chosen:
        alive = survives(path, tree, tests[str(path), name][:40])
        survivors += alive
        word = "SURVIVED" if alive else "caught"
        shown = f"{' '.join(was.split())[:70]}  →  {' '.join(is_now.split())[:70]}"
        print(f"{word:8} {path.relative_to(ROOT)}:{line}  {shown}", flush=True)
    caught = len(chosen) - survivors
    print(f"{caught} of {len(chosen)} caught, of {len(known)} that some test reaches")
    return int(caught < 0.9 * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
