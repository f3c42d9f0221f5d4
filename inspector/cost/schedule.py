"""The time of a whole program: its instructions in the order of the schedule, loops multiplied, transfers beside them.

A device computes one instruction after the other, each as long as its products or its memory traffic take, whichever
is longer. Collectives that use the same links in the same direction take turns. One that is not asynchronous is waited
for; one that is goes on beside what is between its start and its done, and so do copies between memories, one after the
other. No program takes less than all its products alone, or all its memory traffic alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...parsers.hlo import HloModule, Instruction
from ..execution_counts.hlo_trip_count import trip_count
from ..report import Collective
from ..report.cost import FunctionCost
from .lanes import Lanes, LinkClock, lanes_of
from .places import Machine
from .work import Work, Workload

BRANCHES = ("branch_computations", "true_computation", "false_computation")


NONE = Work()

MAX_DEPTH = 8
"""Computations inside each other."""


@dataclass(frozen=True, slots=True)
class Span:
    """The cost of a part of a program: seconds, those of them in which it waits for transfers, and its work.

    `known` is false where a loop's trip count is not, and one round was counted.
    """

    seconds: float = 0.0
    waiting: float = 0.0
    work: Work = NONE
    known: bool = True

    def __add__(self, other: Span) -> Span:
        return Span(
            self.seconds + other.seconds,
            self.waiting + other.waiting,
            self.work + other.work,
            self.known and other.known,
        )

    def times(self, count: int) -> Span:
        """So many of it, one after the other."""
        work = Work(self.work.flops * count, self.work.narrow * count, self.work.bytes * count)
        return Span(self.seconds * count, self.waiting * count, work, self.known)


@dataclass(frozen=True, slots=True)
class Transfer:
    """How long a collective takes on some links."""

    seconds: float
    lanes: Lanes

    def __add__(self, other: Transfer | None) -> Transfer:
        if other is None:
            return self
        lanes = None if self.lanes is None or other.lanes is None else self.lanes | other.lanes
        return Transfer(self.seconds + other.seconds, lanes)


class Schedule:
    """Goes through a module as its schedule does."""

    def __init__(self, module: HloModule, collectives: Iterable[Collective], machine: Machine) -> None:
        self._module = module
        self._machine = machine
        self._workload = Workload(module, machine.chip.platform)
        self._transfers: dict[tuple[str, str], Transfer] = {}
        self._within: dict[str, Transfer] = {}
        for collective in collectives:
            seconds = collective.estimate.seconds if collective.estimate is not None else 0.0
            transfer = Transfer(seconds, lanes_of(collective, machine))
            self._transfers[collective.computation, collective.name] = transfer
            self._within[collective.computation] = transfer + self._within.get(collective.computation)
        self._known: dict[str, Span] = {}

    def total(self) -> Span:
        """The whole program."""
        entry = self._module.entry
        return Span() if entry is None else self.of(entry.name)

    def of(self, name: str) -> Span:
        """One run of a computation; calls in a cycle, which only a broken text has, count as nothing."""
        if name not in self._known:
            self._known[name] = Span()
            computation = self._module.computation(name)
            if computation is not None:
                self._known[name] = self._run(computation.instructions)
        return self._known[name]

    def seconds_of(self, work: Work) -> float:
        """How long a device takes for some work: as long as the slower of computing and memory."""
        chip, share = self._machine.chip, self._machine.share
        computing = work.flops / chip.figure("flops") + work.narrow / chip.figure("flops_int8")
        return max(computing, work.bytes / chip.figure("hbm_bandwidth")) / share

    def _run(self, instructions: Iterable[Instruction]) -> Span:
        clock = waiting = 0.0
        copied = 0.0
        links = LinkClock()
        work, known = Work(), True
        pending: dict[str, float] = {}
        for instruction in instructions:
            transfer = self._transfer(instruction)
            if transfer is not None:
                end = links.transfer(transfer.lanes, clock, transfer.seconds)
                if _begins(instruction):
                    pending[instruction.name] = end
                else:
                    waiting += end - clock
                    clock = end
                continue
            carried = [pending[operand] for operand in instruction.operands if operand in pending] if pending else []
            if carried and not _ends(instruction):
                pending[instruction.name] = max(carried)
            elif carried:
                until = max(clock, *carried)
                waiting += until - clock
                clock = until
            inner = self._inner(instruction)
            own = self._workload.of(instruction)
            if instruction.opcode == "copy-start":
                copied = max(copied, clock) + self.seconds_of(own)
                pending[instruction.name] = copied
                work += own
                continue
            clock += self.seconds_of(own) + inner.seconds
            waiting += inner.waiting
            work, known = work + own + inner.work, known and inner.known
        end = max(clock, links.latest, copied)
        return Span(end, waiting + end - clock, work, known)

    def _transfer(self, instruction: Instruction) -> Transfer | None:
        """The collective that an instruction is or begins, or those that it has inside."""
        found = self._transfers.get((instruction.computation.name, instruction.name))
        if found is not None or instruction.opcode in ("while", "conditional", "call"):
            return found
        for name in instruction.called:
            found = self._inside(name) or found
        return found

    def _inside(self, name: str, depth: int = 0) -> Transfer | None:
        """The collectives of a computation that runs as one instruction, and of those in it."""
        found = self._within.get(name)
        computation = self._module.computation(name) if found is None and depth < MAX_DEPTH else None
        for instruction in () if computation is None else computation.instructions:
            for called in instruction.called:
                inner = self._inside(called, depth + 1)
                found = found if inner is None else inner + found
        return found

    def _inner(self, instruction: Instruction) -> Span:
        """What an instruction runs in other computations."""
        match instruction.opcode:
            case "while":
                trips = trip_count(instruction, self._module)
                body = self._sum(instruction, ("body", "condition")).times(1 if trips is None else trips)
                return body if trips is not None else Span(body.seconds, body.waiting, body.work, False)
            case "conditional":
                names = [name for key in BRANCHES for name in instruction.callees.get(key, ())]
                return max(map(self.of, names), key=lambda span: span.seconds, default=Span())
            case "call" | "async-start" | "call-start":
                return self._sum(instruction, ("to_apply", "calls", "called_computations"))
        return Span()

    def _sum(self, instruction: Instruction, keys: Iterable[str]) -> Span:
        callees: Mapping[str, tuple[str, ...]] = instruction.callees
        total = Span()
        for key in keys:
            for name in callees.get(key, ()):
                total += self.of(name)
        return total


def _begins(instruction: Instruction) -> bool:
    """Whether a collective goes on beside the instructions that follow."""
    is_start = instruction.opcode.endswith("-start") or instruction.opcode == "send"
    return is_start or instruction.name.startswith("async-collective-start")


def _ends(instruction: Instruction) -> bool:
    """Whether what was begun is over with this instruction; others hand it on."""
    if instruction.opcode == "fusion":
        return not instruction.name.startswith("async-collective") or "done" in instruction.name
    return instruction.opcode not in ("get-tuple-element", "tuple", "bitcast", "async-update")


def cost_of(module: HloModule, collectives: Sequence[Collective], machine: Machine) -> FunctionCost:
    """The cost of a scheduled module."""
    chip, share = machine.chip, machine.share
    span = Schedule(module, collectives, machine).total()
    work = span.work
    compute = (work.flops / chip.figure("flops") + work.narrow / chip.figure("flops_int8")) / share
    memory = work.bytes / chip.figure("hbm_bandwidth") / share
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
        compute=compute,
        memory=memory,
        communication=sum(seconds for seconds in communication if seconds is not None),
        total=max(span.seconds, compute, memory),
        waiting=span.waiting,
        at_least=not span.known or None in communication,
        figures=tuple((name, chip.figures[name]) for name in names),
    )
