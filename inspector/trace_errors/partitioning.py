"""Programs that XLA's partitioner makes invalid: the verifier says so of an instruction, which comes from a call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...parsers.source import Frame
from ..findings.fixes.edits import extent, together, wrapped
from ..report import SourcePosition, StoryStep
from .problem import Candidate, Problem, Reason

INVALID = re.compile(
    r"during context \[hlo verifier\]: (?P<what>.*?)\n(?P<rest>.*?)Failed after spmd-partitioning", re.DOTALL
)
_NAME = re.compile(r'op_name="([^"]*)"')
_FRAME = re.compile(r"^\s*(?P<file>\S.*):(?P<line>\d+):(?P<column>\d+) \[(?P<function>[^\]]*)\]\s*$", re.MULTILINE)

OPERANDS = (ast.List, ast.Tuple, ast.Name, ast.Call, ast.Subscript, ast.Attribute, ast.BinOp)


def explain_invalid(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain an operation that the partitioner makes a wrong instruction of."""
    name = _NAME.search(said["rest"])
    operation = "an operation" if name is None else name[1].rpartition("/")[2]
    stack = tuple(
        Frame(each["file"], each["function"], int(each["line"]), end_line=0, column=int(each["column"]), end_column=0)
        for each in _FRAME.finditer(said["rest"])
        if each["file"] in problem.files
    )
    where = SourcePosition.exact(stack) if stack else problem.place
    title = f"XLA partitions {operation} wrongly: a bug of the compiler, which its verifier finds"
    step = StoryStep(f"the verifier says of what it is compiled to: {said['what'].strip().rstrip(':')}", where)
    return Reason(title, "", (step,), candidates=tuple(_candidates(problem, stack)), where=where)


def _candidates(problem: Problem, stack: tuple[Frame, ...]) -> Iterator[Candidate]:
    """Edits that keep the compiler from joining the call with what makes its operands; last, whole operands."""
    sharding, mesh = problem.named("NamedSharding"), next((each.name for each in problem.meshes()), None)
    whole = f", {sharding}({mesh}, {problem.spec_text(())}))"
    for function, text, after in (
        ("optimization_barrier", "compile {} apart from its operands: optimization_barrier", ")"),
        *([("with_sharding_constraint", "have the operands of {} whole on every device", whole)] if mesh else []),
    ):
        for file, call in (found for frame in stack for found in _calls(problem, frame)):
            operands = [each for each in call.args if isinstance(each, OPERANDS)]
            parts = [wrapped((file, operand), f"jax.lax.{function}(", after) for operand in operands]
            for edits in dict.fromkeys(filter(None, (*parts, together(*parts)))):
                yield Candidate(text.format(ast.unparse(call.func)), edits)


def _calls(problem: Problem, frame: Frame) -> list[tuple[str, ast.Call]]:
    nodes = [(file, node) for file, node in problem.nodes if file == frame.file and isinstance(node, ast.Call)]
    exact = [(file, node) for file, node in nodes if extent(node)[:2] == (frame.line, frame.column)]
    return exact or [(file, node) for file, node in nodes if node.lineno == frame.line]
