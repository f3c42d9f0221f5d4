"""The user's script, module or notebook, run as Python runs it, as `__main__`, with calls of one function observed.

An expression that names the function and is called, as in `step(x)`, `self.step(x)` or `step.lower(x)`, passes through
`CALLED`; the body of a function of that name begins with `ENTERED`. Positions and lines stay the same.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple, NoReturn

from ...protocol.request import UsageError
from .. import failures, patches
from .resolve import no_module, package_root

Capture = Callable[..., None]
"""Capture a function, with its arguments if they are known."""


class Runnable(NamedTuple):
    """The text to run, the file that it is in, and the spec of a module that is run like `python -m`."""

    file: str
    text: bytes
    spec: ModuleSpec | None = None


def runnable(script: Path | None, module: str) -> Runnable:
    """The script, or a module by its name, or in a package the module that a file is.

    Raises:
        UsageError: there is no such module, or it has no source.
    """
    if script is not None and script.suffix == ".ipynb":
        try:
            return Runnable(str(script), script_of(patches.text_of(script)))
        except ValueError as error:
            raise UsageError(f"{script} is not a notebook: {error}") from None
    if script is not None and (root := package_root(script)) == script.parent:
        return Runnable(str(script), patches.text_of(script))
    if script is not None:
        module = ".".join(script.relative_to(root).with_suffix("").parts)
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        raise no_module(module)
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(f"the module {module} has no Python source")
    return Runnable(spec.origin, patches.text_of(spec.origin), spec)


def run(program: Runnable, dotted: str) -> None:
    """Run it as `__main__`, with the calls of a function observed in it and in the user's modules that it imports.

    A script may end with `sys.exit()`; what else it raises passes through.
    """
    main = ModuleType("__main__")
    main.__file__ = program.file
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    if program.file.endswith(".ipynb"):
        main.__dict__.update(display=_Notebook(), get_ipython=_Notebook())
    if program.spec is not None:
        main.__spec__, main.__package__ = program.spec, program.spec.parent
        main.__loader__ = program.spec.loader
    sys.modules["__main__"] = main
    patches.quote(program.text, program.file)
    if dotted:
        patches.compile_with(lambda text, file: _observed(text, file, dotted))
    pid, leave = os.getpid(), os._exit

    def exit_now(status: int) -> NoReturn:
        """End the script, as `os._exit` does; a process that it forked truly."""
        if os.getpid() == pid:
            raise SystemExit(status)
        leave(status)

    os._exit = exit_now
    try:
        with ends_well():
            exec(compiled(program.text, program.file, dotted), vars(main))
    finally:
        os._exit = leave


@contextmanager
def ends_well() -> Iterator[None]:
    """Go on behind a script, or a function of it, that ends with `sys.exit()`, as click's do."""
    try:
        yield
    except SystemExit as ending:
        if ending.code not in (None, 0):
            raise


class _Notebook:
    """Objects that IPython gives a notebook; here they do nothing."""

    def __getattr__(self, name: str) -> _Notebook:
        return self

    def __call__(self, *args: object, **kwargs: object) -> _Notebook:
        return self


def _observed(text: bytes, file: str, dotted: str) -> CodeType | None:
    if dotted.rpartition(".")[2].encode() not in text or not failures.is_users(file):
        return None
    try:
        return compiled(text, file, dotted)
    except (SyntaxError, ValueError):
        return None


CALLED, ENTERED = "__shardscope_called__", "__shardscope_entered__"
"""Built-in functions of the process: they exist while the script runs."""

AHEAD_OF_TIME = ("lower", "trace")
"""Methods of a jitted function that take the arguments of a call."""


def compiled(text: bytes, file: str, dotted: str) -> CodeType:
    """The code of a module in which calls of a function are observed."""
    tree = _Observing(dotted).visit(ast.parse(text, file)) if dotted else ast.parse(text, file)
    return compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)


class _Observing(ast.NodeTransformer):
    def __init__(self, dotted: str) -> None:
        *owners, self._name = dotted.split(".")
        self._owner = owners[-1] if owners else None

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        function = node.func
        if self._is_meant(function):
            node.func = self._through_hook(function)
        elif isinstance(function, ast.Attribute) and function.attr in AHEAD_OF_TIME and self._is_meant(function.value):
            node.func = self._through_hook(function.value, function.attr)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        if node.name == self._name:
            entered = ast.copy_location(ast.Expr(ast.Call(ast.Name(ENTERED, ast.Load()), [], [])), node.body[0])
            node.body.insert(1 if ast.get_docstring(node, clean=False) is not None else 0, entered)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        """A lambda with the name is entered as a function is."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Lambda) and any(self._is_meant(target) for target in node.targets):
            body = node.value.body
            entered = ast.Call(ast.Name(ENTERED, ast.Load()), [], [])
            both = ast.Subscript(ast.Tuple([entered, body], ast.Load()), ast.Constant(1), ast.Load())
            node.value.body = ast.copy_location(both, body)
        return node

    def _is_meant(self, node: ast.expr) -> bool:
        return self._name == _last_name(node)

    def _through_hook(self, function: ast.expr, method: str = "") -> ast.expr:
        has_owner = isinstance(function, ast.Attribute) and _last_name(function.value) == self._owner
        call = ast.Call(ast.Name(CALLED, ast.Load()), [function, ast.Constant(method), ast.Constant(has_owner)], [])
        return ast.copy_location(call, function)


def _last_name(node: ast.expr) -> str | None:
    return getattr(node, "id", None) or getattr(node, "attr", None)


def has_inputs(text: bytes, name: str) -> bool:
    """Return whether a script has arguments for a function, so that no call is needed to know them.

    Without a call in the script, it is so as well for a function without parameters, and where `inputs` may be those of
    any function.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    name = name.rpartition(".")[2]
    nodes = list(_outside_functions(tree))
    bound = {each: node for node in nodes for each in _bound(node)}
    if f"{name}_inputs" in bound:
        return True
    own = bound.get(name)
    if isinstance(own, ast.FunctionDef) and any("inputs(" in ast.unparse(each) for each in own.decorator_list):
        return True
    without_parameters = isinstance(own, ast.FunctionDef) and not ast.unparse(own.args)
    if not _is_inputs(bound.get("inputs")) and not without_parameters:
        return False
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return not any(name == _last_name(called) for called in calls)


def _is_inputs(node: ast.AST | None) -> bool:
    """Return whether a variable `inputs` is meant as arguments: a function, something imported, or a tuple."""
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Tuple | ast.Lambda)
    return isinstance(node, ast.FunctionDef | ast.ImportFrom)


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _outside_functions(node)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name):
            yield name
        case ast.Assign(targets):
            yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.AnnAssign(ast.Name(name)):
            yield name
        case ast.ImportFrom(names=names) | ast.Import(names):
            yield from (each.asname or each.name for each in names)


MAKE_NAMES = frozenset({"globals", "locals", "vars", "setattr", "exec", "__getattr__", "__dict__"})
"""Names by which a script may make others."""


def names_in(text: bytes) -> set[str] | None:
    """The names in a script that may be those of a function; None if it may have others, or cannot be parsed."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return None
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in nodes):
        return None
    found = {getattr(node, "name", None) or getattr(node, "id", None) or getattr(node, "attr", None) for node in nodes}
    if found & MAKE_NAMES:
        return None
    return {each for each in found | {n for node in nodes for n in _bound(node)} if isinstance(each, str)}


def functions_in(text: bytes) -> list[str]:
    """The functions that a script defines, wherever in it, in their order; methods with their class.

    None of a text that is no Python, which says so when it is run.
    """
    try:
        found = list(_functions_of(ast.parse(text), ""))
    except (SyntaxError, ValueError):
        return []
    return list(dict.fromkeys(name for _, name in sorted(found) if not name.endswith(".__init__")))


def _functions_of(tree: ast.AST, owner: str) -> Iterator[tuple[int, str]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, f"{owner}{node.name}"
        yield from _functions_of(node, f"{node.name}." if isinstance(node, ast.ClassDef) else "")


def called_class(text: bytes, name: str) -> bool | None:
    """Return whether a name is that of a class in a script, and if so whether its objects can be called."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    known = next((node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name), None)
    return None if known is None else any(getattr(node, "name", "") == "__call__" for node in known.body)


def script_of(notebook: bytes) -> bytes:
    """The cells of code of a notebook as one script, with what only IPython understands as comments.

    Raises:
        ValueError: it is not a notebook.
    """
    try:
        cells = [cell for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
        texts = ["".join(cell["source"]).rstrip("\n") for cell in cells]
    except (KeyError, TypeError) as error:
        raise ValueError(f"it has no {error}") from error
    heads = (f"{failures.CELL}{number}]:" for number, _ in enumerate(texts, 1))
    return "\n\n".join(f"{head}\n{_plain(text)}" for head, text in zip(heads, texts, strict=True)).encode() + b"\n"


_OPTIONS = r"(?:-(?:[nrp][ \t]*\d+|\S+)[ \t]+)*(?=\S)"
"""Options of a magic, of which those of `%timeit -n 5 -r 5` have numbers, in front of a statement."""

_MAGICS: tuple[tuple[str, str], ...] = (
    (rf"^(\s*)%(?:time|timeit|prun|memit|mprun|lprun)[ \t]+{_OPTIONS}", r"\1"),  # they run a statement
    (rf"^(\s*)([\w.]+(?:\s*,\s*[\w.]+)*)\s*=\s*%(?:time|timeit)[ \t]+{_OPTIONS}", r"\1\2 = "),
    (r"^(\s*)(\w+)\s*=\s*([%!].*)$", r"\1\2 = []  # \3"),
    (r"^(\s*)([%!?].*|[\w.]+\?+\s*)$", r"\1pass  # \2"),
)
"""Additions of IPython to Python, and the Python in their place."""


def _plain(cell: str) -> str:
    if re.match(r"\s*%%(?!(time|timeit|capture)\b)", cell):  # of another language, or written to a file
        return re.sub(r"^", "# ", cell, flags=re.MULTILINE)
    for pattern, replacement in _MAGICS:
        cell = re.sub(pattern, replacement, cell, flags=re.MULTILINE)
    return cell
