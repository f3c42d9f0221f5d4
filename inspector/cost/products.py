"""The matrix products of a partitioned program."""

from __future__ import annotations

from ...parsers.hlo import Instruction
from ...parsers.record import Record
from ..dataflow.meaning import Does, names_of
from ..execution_counts.hlo_executions import hlo_executions
from ..ir.derived import derived
from ..ir.program import Program
from .matmul import matmul_flops


class Product(Record, frozen=True):
    """A product, its operations on a device in one step, and how often it runs there."""

    instruction: Instruction
    flops: int
    runs: int


@derived
def products_of(program: Program) -> tuple[Product, ...]:
    """The products of the partitioned program. What runs an unknown number of times counts once."""
    stage = program.stage("hlo-spmd")
    executions = None if stage is None else hlo_executions(stage)
    if executions is None:
        return ()
    found = []
    for each in executions.module.with_opcode(names_of(Does.CONTRACT)):
        flops = matmul_flops(each, each.operand_types)
        runs = executions.of(each.computation.name).count
        runs = 1 if runs is None else runs
        if flops and runs:
            found.append(Product(each, flops * runs, runs))
    return tuple(found)
