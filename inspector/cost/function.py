"""A whole function by the cost model: what one run takes, and what a device does when."""

from __future__ import annotations

from ..report.cost import FunctionCost
from ..report.timeline import Timeline
from .schedule import Schedule


def timeline_of(schedule: Schedule) -> Timeline:
    """Return the time line of a device in one run."""
    span, entry = schedule.total(), schedule.module.entry
    activities = () if entry is None else schedule.activities(entry.name)
    return Timeline(schedule.machine.chip.title, span.seconds, span.waiting, activities=activities)


def cost_of(schedule: Schedule) -> FunctionCost:
    """Return the cost of one run."""
    chip, share = schedule.machine.chip, schedule.machine.share
    span = schedule.total()
    work = span.work
    compute = (work.flops / chip.figure("flops") + work.narrow / chip.figure("flops_int8")) / share
    memory = work.bytes / chip.figure("hbm_bandwidth") / share
    communication = {
        each.name: each.step_seconds
        for each in schedule.collectives
        if each.groups or each.pairs or each.estimate is not None
    }
    untimed = (f"the time of {name}" for name, seconds in communication.items() if seconds is None)
    names = ("flops", "flops_int8", "hbm_bandwidth")
    return FunctionCost(
        chip=chip.title,
        flops=work.flops + work.narrow,
        bytes=work.bytes,
        compute=compute,
        memory=memory,
        communication=sum(seconds for seconds in communication.values() if seconds is not None),
        total=max(span.seconds, compute, memory),
        waiting=span.waiting,
        unknown=span.unknown or tuple(untimed),
        figures=tuple((name, chip.figures[name]) for name in names),
    )
