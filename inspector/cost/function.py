"""The cost of a whole function on its target: rooflines, and the time that its schedule takes by the model."""

from __future__ import annotations

from collections.abc import Sequence

from ...parsers.hlo import HloModule
from ..report import Collective
from ..report.cost import FunctionCost
from .places import Machine
from .schedule import Schedule


def cost_of(module: HloModule, collectives: Sequence[Collective], machine: Machine) -> FunctionCost:
    """The cost of a scheduled module."""
    chip, share = machine.chip, machine.share
    span = Schedule(module, collectives, machine).total()
    work = span.work
    communication = [
        None if each.estimate is None or each.executions is None else each.estimate.seconds * each.executions
        for each in collectives
        if each.groups or each.pairs or each.estimate is not None
    ]
    names = ("flops", "flops_int8", "hbm_bandwidth")
    return FunctionCost(
        chip=chip.title,
        flops=work.flops + work.narrow,
        bytes=work.bytes,
        compute=(work.flops / chip.figure("flops") + work.narrow / chip.figure("flops_int8")) / share,
        memory=work.bytes / chip.figure("hbm_bandwidth") / share,
        communication=sum(seconds for seconds in communication if seconds is not None),
        total=span.seconds,
        waiting=span.waiting,
        at_least=not span.known or None in communication,
        figures=tuple((name, chip.figures[name]) for name in names),
    )
