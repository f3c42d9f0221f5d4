"""An error of a script, as its explainers see it: what was said, where, the values there, and the source.

Its explanation is a `Reason` with candidates, the likeliest first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from ...parsers.python import expression_in, module_in
from ...parsers.record import Record
from ...parsers.source import Frame
from ..capture.model import Capture
from ..capture.protocol.events import StackFrame
from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Edits, Placed, extent
from ..findings.fixes.specs import SPECS
from ..ir.program import Program, SourceFile, file_on_disk
from ..report import Edit, SourcePosition, StoryStep
from .operands import Spec
from .trying import Run, Texts


class Candidate(Record, frozen=True):
    """An edit to be tried. `is_other_data` where the script has other data with it, so that values cannot be equal.

    `is_spelling` where it says the same in other words: there is nothing to compare its values with. `is_last` where it
    gives up the mode of the mesh: it is tried if nothing else helps. `is_fewer` where it leaves devices idle,
    `is_split` where it says that some batches are sharded.
    """

    title: str
    edits: Edits = ()
    is_other_data: bool = False
    is_spelling: bool = False
    is_last: bool = False
    is_fewer: bool = False
    is_split: bool = False


class Reason(Record, frozen=True):
    """Reason for an error: in one sentence, the argument that it is about, and what may help.

    `where` is its place in the user's source, if it is not where the exception was raised.
    """

    title: str
    argument: str = ""
    steps: tuple[StoryStep, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    where: SourcePosition | None = None


ARRAYS = ("array", "tracer", "host", "deleted")


class Argument(Record, frozen=True):
    """An array that the user's code names: the expression, as in `params['w']`, its shape and sharding."""

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    spec: Spec | None = None
    mesh: tuple[tuple[str, int], ...] = ()
    devices: tuple[int, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The variable."""
        return re.split(r"[\[.]", self.name, maxsplit=1)[0]


class Problem:
    """One error of a run."""

    def __init__(self, run: Run, texts: Texts, script: str) -> None:
        self.run, self.texts = run, texts
        self.said = run.said
        self.stack: tuple[StackFrame, ...] = run.stack
        self.script = script
        self._sources: dict[str, SourceFile | None] = {}
        self.frames = msgspec.convert(run.facts, list[tuple[Argument, ...]])

    def source(self, file: str) -> SourceFile | None:
        """The text of a file in this run."""
        if file not in self._sources:
            text = self.texts.get(file)
            self._sources[file] = file_on_disk(file) if text is None else SourceFile(file, text)
        return self._sources[file]

    def tree(self, file: str) -> ast.Module:
        """The syntax of a file; an empty one of a text that is no Python."""
        source = self.source(file)
        try:
            return ast.Module([], []) if source is None else module_in(source.data)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module([], [])

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The files through which the error went, and the script."""
        own = [frame.file for frame in self.stack if "site-packages" not in frame.file]
        return tuple(dict.fromkeys([*own, self.script]))

    @cached_property
    def nodes(self) -> list[tuple[str, ast.AST]]:
        """The syntax of the user's files."""
        return [(file, node) for file in self.files for node in ast.walk(self.tree(file))]

    @cached_property
    def own(self) -> list[int]:
        """Numbers of the frames that are not of installed packages."""
        found = [n for n, frame in enumerate(self.stack) if "site-packages" not in frame.file]
        return found or list(range(len(self.stack)))[:1]

    @cached_property
    def program(self) -> Program:
        """The script as a program that was not captured, for what edits calls."""
        return Program(Capture(script_text=self.source(self.script)))

    @cached_property
    def place(self) -> SourcePosition:
        """The user's position at the error."""
        frames = (self.stack[n] for n in self.own)
        return SourcePosition.exact(
            tuple(Frame(f.file, f.function, f.line, f.end_line, f.column, f.end_column) for f in frames)
        )

    @cached_property
    def expressions(self) -> list[Placed]:
        """The expression of the user's that was evaluated in each frame, innermost first."""
        found = []
        for number in self.own:
            frame = self.stack[number]
            there = (frame.line, frame.column, frame.end_line, frame.end_column)
            nodes = [node for file, node in self.nodes if file == frame.file and isinstance(node, ast.expr)]
            exact = [node for node in nodes if extent(node) == there]
            if not exact and not frame.end_line:  # only the line is known
                exact = [node for node in nodes if node.lineno == frame.line and isinstance(node, ast.Call)]
            found += [(frame.file, node) for node in exact[:1]]
        return found

    def calls(self, *names: str) -> Iterator[tuple[str, ast.Call]]:
        """Calls of these functions, those that failed first, then those of their lines, then all others."""
        around = [(file, node) for file, node in self.expressions if isinstance(node, ast.Call)]
        lines = {(self.stack[n].file, self.stack[n].line) for n in self.own}
        others = [(file, node) for file, node in self.nodes if isinstance(node, ast.Call)]
        near = [each for each in others if (each[0], each[1].lineno) in lines]
        seen: set[tuple[str, int, int]] = set()
        for file, call in (*around, *near, *others):
            key = (file, call.lineno, call.col_offset)
            if name_of(call.func) in names and key not in seen:
                seen.add(key)
                yield file, call

    @cached_property
    def arguments(self) -> list[Argument]:
        """Everything that the frames name, innermost first, each name once."""
        found: dict[str, Argument] = {}
        for number in self.own:
            for each in self.frames[number] if number < len(self.frames) else ():
                found.setdefault(each.name, each)
        return list(found.values())

    def meshes(self) -> list[Argument]:
        """The meshes that the user's code names."""
        return [each for each in self.arguments if each.kind == "mesh"]

    def mesh_of(self, axes: Iterable[str]) -> str | None:
        """The name of a mesh with these axes."""
        wanted = set(axes)
        return next((each.name for each in self.meshes() if wanted <= {name for name, _ in each.mesh}), None)

    def named(self, what: str) -> str:
        """The script's name for a class of `jax.sharding`."""
        for _, node in self.nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jax"):
                for alias in node.names:
                    if alias.name == what or (what == "PartitionSpec" and alias.name == "P"):
                        return alias.asname or alias.name
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Name() as value):
                    if name_of(value) == what:
                        return name
        return f"jax.sharding.{what}"

    @property
    def spec_name(self) -> str:
        """The script's name for PartitionSpec."""
        return self.named("PartitionSpec")

    def spec_text(self, spec: Sequence[Sequence[str]]) -> str:
        """A spec as the script would write it."""
        entries = [repr(each[0]) if len(each) == 1 else repr(tuple(each) or None) for each in spec]
        while entries and entries[-1] == "None":
            entries.pop()
        return f"{self.spec_name}({', '.join(entries)})"

    def spec_like(self, call: ast.Call, spec: Sequence[Sequence[str]]) -> str:
        """A spec as one is written: by its class, or by the user's helper, which takes as many entries."""
        text = self.spec_text(spec)
        if name_of(call.func) in (*SPECS, self.spec_name):
            return text
        written = expression_in(text)
        assert isinstance(written, ast.Call)
        entries = [*map(ast.unparse, written.args), *["None"] * len(call.args)]
        return f"{ast.unparse(call.func)}({', '.join(entries[: len(call.args)])})"

    def specs(self, wanted: Sequence[Sequence[str]]) -> Iterator[tuple[str, ast.Call]]:
        """The places where such a spec is written, those at the error first: also as the names for a helper."""
        shortest = trimmed(wanted)
        helpers = (node.name for _, node in self.nodes if isinstance(node, ast.FunctionDef)) if shortest else ()
        for file, call in self.calls(*SPECS, self.spec_name, *helpers):
            entries = entries_of(call)
            if entries is not None and (entries == list(wanted) or trimmed(entries) == shortest):
                yield file, call

    def statement(self, placed: tuple[str, ast.AST]) -> ast.stmt | None:
        """The innermost statement around an expression."""
        file, wanted = placed
        around = [
            node
            for at, node in self.nodes
            if at == file and isinstance(node, ast.stmt) and any(each is wanted for each in ast.walk(node))
        ]
        return min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)

    def assigned(self, file: str, name: str) -> Iterator[ast.expr]:
        """Values that are assigned to a name in a file, last first."""
        found = [
            node.value
            for at, node in self.nodes
            if at == file and isinstance(node, ast.Assign)
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        ]
        yield from reversed(found)

    def followed(self, file: str, node: ast.expr) -> ast.expr:
        """An expression, or what was assigned to its name."""
        for _ in range(4):
            if not isinstance(node, ast.Name):
                break
            node = next(self.assigned(file, node.id), node)
        return node

    def in_loop(self) -> bool:
        """Return whether one of the frames is inside of a loop."""
        loops = [(file, node) for file, node in self.nodes if isinstance(node, ast.For | ast.While)]
        return any(
            file == frame.file and node.lineno <= frame.line <= (node.end_lineno or node.lineno)
            for frame in (self.stack[number] for number in self.own)
            for file, node in loops
        )


def trimmed(spec: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The entries of a spec without empty ones at its end."""
    entries = [tuple(each) for each in spec]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def entries_of(written: ast.Call | ast.Tuple | ast.List) -> list[tuple[str, ...]] | None:
    """The entries of a spec that is written out, or of a tuple; None of one that is not."""
    found: list[tuple[str, ...]] = []
    for argument in written.args if isinstance(written, ast.Call) else written.elts:
        match argument:
            case ast.Constant(None):
                found.append(())
            case ast.Constant(str(name)):
                found.append((name,))
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if all(
                isinstance(each, ast.Constant) for each in elements
            ):
                found.append(tuple(str(each.value) for each in elements if isinstance(each, ast.Constant)))
            case _:
                return None
    return found


def argument_of(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    """An argument of a call, by position or keyword."""
    given = next((each.value for each in call.keywords if each.arg == keyword), None)
    return given if given is not None else call.args[position] if len(call.args) > position else None


def without_keyword(file: str, call: ast.Call, name: str) -> Edits:
    """A call without one of its keyword arguments."""
    keyword = next((each for each in call.keywords if each.arg == name), None)
    if keyword is None:
        return ()
    start, end = (keyword.lineno, keyword.col_offset), extent(keyword.value)[2:]
    values = (*call.args, *(each.value for each in call.keywords))
    before = sorted(extent(each)[2:] for each in values if extent(each)[2:] < start)
    if before:
        return (Edit(file, *before[-1], *end, ""),)
    others = (
        *((each.lineno, each.col_offset) for each in call.args),
        *((k.lineno, k.col_offset) for k in call.keywords),
    )
    line, column = min((each for each in others if each > end), default=end)
    return (Edit(file, *start, line, column, ""),)
