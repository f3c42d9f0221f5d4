"""The execution of an operation in the compiled program: the size of each dimension on one device, and its collectives.

Where values of an operation are sharded differently, the partitioner reshards some of them; what it executes the
operation on is in the shapes of the instruction that came out of it, which is found by the operation's number. What
takes the result of a collective, or makes its operands, is found along the values of the program.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from ...parsers.hlo import Computation, HloModule, Instruction
from ...parsers.mlir import ShardingRule
from ...parsers.sharding_syntax.mesh import AxisRef
from ..correspondence.numbers import tags_in
from ..correspondence.rows import instructions_of
from ..dataflow.hlo import HloUse, HloValue
from ..dataflow.meaning import SAME, Does, does
from ..dataflow.mlir import Dataflow
from ..dataflow.sources import Place, value_flow
from ..dataflow.walks import Reach, forward
from ..ir.derived import derived
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..ir.types import array_type
from ..report import Collective

STAGE = "hlo-spmd"
"""The output of the partitioner."""

FORMS = Does.FORWARD | Does.RESHAPE
"""Classes that change nothing but the form of a value, their first operand."""

PERMUTE = "collective-permute"

MAX_FORMS = 8


def executed_sizes(program: Program, flow: Dataflow, row: int) -> Mapping[str, int]:
    """The size of each factor of an operation's rule on one device, as it is executed; without those not known."""
    stage, text = program.stage("sdy"), program.stage(STAGE)
    return {} if stage is None or text is None else _sizes(stage, text, flow, row)


def kept_axes(
    program: Program, flow: Dataflow, row: int, factor: str, cuts: Collection[tuple[AxisRef, ...]]
) -> frozenset[tuple[AxisRef, ...]] | None:
    """Return which ways to shard a factor agree with the executed operation; None if the factor's size is not known."""
    rule, executed = flow.records.rule(flow.rows[row]), executed_sizes(program, flow, row).get(factor)
    size = None if rule is None else dict(rule.sizes).get(factor)
    mesh = next((mesh for mesh in flow.module.meshes.values() if mesh.axes), None)
    if executed is None or size is None or mesh is None:
        return None
    try:
        return frozenset(axes for axes in cuts if -(-size // math.prod(map(mesh.axis_size, axes))) == executed)
    except ValueError:
        return None


def takes_result(program: Program, flow: Dataflow, row: int, collective: Collective) -> bool:
    """Return whether an operation takes a collective's result, through instructions that only change the form."""
    text = program.stage(collective.stage)
    return any(
        _made(each.computation, name) is each.computation.instruction(collective.name)
        for each in instructions_of(program.stage("sdy"), text, flow, row)
        if each.computation.name == collective.computation
        for name in each.operands
    )


def is_permuted(program: Program, flow: Dataflow, row: int, value: int) -> bool:
    """Return whether devices permute an operand of the executed operation, or its result in front of every use.

    `value` is its number among operands and results. Along which axes it is sharded there, its size does not tell.
    """
    text = program.stage(STAGE)
    for instruction in instructions_of(program.stage("sdy"), text, flow, row):
        if value < len(instruction.operands):
            made = _made(instruction.computation, instruction.operands[value])
            if made is not None and made.opcode == PERMUTE:
                return True
        elif text is not None and text.hlo is not None and _goes_to_permutes(text.hlo, instruction):
            return True
    return False


def _made(computation: Computation, name: str) -> Instruction | None:
    """The instruction that makes a value, behind those that only change its form."""
    made = computation.instruction(name)
    for _ in range(MAX_FORMS):
        if made is None or does(made.opcode) not in FORMS or not made.operands:
            break
        made = computation.instruction(made.operands[0])
    return made


def _goes_to_permutes(module: HloModule, instruction: Instruction) -> bool:
    found, reached = False, [instruction]
    for each in reached:
        for user, *_ in module.graph.users(each)[0]:
            if does(user.opcode) in FORMS or user.opcode == "all-reduce":
                reached.append(user)
            elif user.opcode == PERMUTE:
                found = True
            elif user.opcode != "select":  # by which devices that keep theirs join those that receive
                return False
    return found


@derived
def _sizes(stage: ParsedStage, text: ParsedStage, flow: Dataflow, row: int) -> Mapping[str, int]:
    rule = flow.records.rule(flow.rows[row])
    met: dict[str, set[int]] = {}
    for instruction in instructions_of(stage, text, flow, row):
        for factor, size in () if rule is None else _of_instruction(rule, instruction):
            met.setdefault(factor, set()).add(size)
    return {factor: next(iter(sizes)) for factor, sizes in met.items() if len(sizes) == 1}


def _of_instruction(rule: ShardingRule, instruction: Instruction) -> Iterator[tuple[str, int]]:
    operands = map(instruction.computation.instruction, instruction.operands)
    types = [array_type(each.type) for each in (*operands, instruction) if each is not None]
    tensors = (*rule.operands, *rule.results)
    if len(types) != len(tensors) or len(rule.results) != 1:
        return
    for type, tensor in zip(types, tensors, strict=True):
        if type.shape is not None and len(type.shape) == len(tensor):
            yield from ((dim[0], size) for dim, size in zip(tensor, type.shape, strict=True) if len(dim) == 1)


HANDED_ON = SAME | Does.SEND
"""Operations that hand on a value, to other devices or in another layout."""

MAX_VISITED = 60
"""Values that are followed from one collective."""


@derived
def taken_by(stage: ParsedStage, collective: Collective) -> frozenset[int]:
    """Return the numbers of the operations that take a collective's result, by whatever hands it on."""
    reach = _reach(stage, collective)
    return (
        frozenset()
        if reach is None
        else frozenset(number for end in reach.ends for number in tags_in(stage, end.instruction.span))
    )


@derived
def outputs_of(stage: ParsedStage, collective: Collective) -> Sequence[int]:
    """The numbers of the program's outputs that a collective's result becomes, by whatever hands it on."""
    reach = _reach(stage, collective)
    return () if reach is None else sorted({output.path[0] if output.path else 0 for output in reach.outputs})


def _reach(stage: ParsedStage, collective: Collective) -> Reach[HloValue, HloUse] | None:
    flow = value_flow(stage)
    start = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or start is None:
        return None
    return forward(flow.flow, flow.values(Place(start)), HANDED_ON, carried=True, limit=MAX_VISITED)


@derived
def around(stage: ParsedStage, collective: Collective) -> frozenset[int]:
    """Return the numbers of the operations that a collective comes from, that take its result, or make its operands.

    Those that hand a value on, and those that are applied to each of the operand's elements, are among them.
    """
    flow = value_flow(stage)
    start = None if flow is None else flow.module.instruction(collective.computation, collective.name)
    if flow is None or start is None:
        return frozenset()
    found = [start]
    for value in flow.values(Place(start)):
        reach = forward(flow.flow, [value], HANDED_ON, carried=True)
        found += [value.instruction for value in reach.values] + [end.instruction for end in reach.ends]
    for operand in (*flow.operands(start), Place(start)):
        found += [source.instruction for source in flow.walk(operand)]
    return frozenset(number for one in dict.fromkeys(found) for number in tags_in(stage, one.span))
