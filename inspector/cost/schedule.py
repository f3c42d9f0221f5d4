"""The time of a whole program: its instructions in the order of the schedule, loops multiplied, transfers beside them.

A device computes one instruction after the other, each as long as its products or its memory traffic take, whichever
is longer. Collectives that use the same links in the same direction take turns. One that is not asynchronous is waited
for; one that is goes on beside what is between its start and its done, and so do copies between memories, one after the
other. No program takes less than all its products alone, or all its memory traffic alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...parsers.hlo import HloModule, Instruction
from ...parsers.hlo.graph import BRANCHES
from ...parsers.record import Record
from ..dataflow.meaning import Does, does
from ..execution_counts.hlo_trip_count import trip_count
from ..ir.name_scopes import last_components
from ..report import Collective
from ..report.timeline import Activity
from .lanes import Lanes, LinkClock, lanes_of
from .places import Machine
from .work import Work, Workload, is_estimated

MAX_DEPTH = 8
"""Computations inside each other."""


class Schedule:
    """Goes through a module as its schedule does."""

    def __init__(self, module: HloModule, collectives: Iterable[Collective], machine: Machine) -> None:
        self.module = module
        self.machine = machine
        self.collectives = tuple(collectives)
        self._workload = Workload(module, machine.chip.platform)
        self._transfers: dict[tuple[str, str], Transfer] = {}
        self._within: dict[str, Transfer] = {}
        for collective in self.collectives:
            transfer = transfer_of(collective, lanes_of(collective, machine))
            self._transfers[collective.computation, collective.name] = transfer
            self._within[collective.computation] = transfer + self._within.get(collective.computation)
        self._known: dict[str, Span] = {}
        self._activities: dict[str, tuple[Activity, ...]] = {}

    def total(self) -> Span:
        """The whole program."""
        entry = self.module.entry
        return Span() if entry is None else self.of(entry.name)

    def of(self, name: str) -> Span:
        """One run of a computation; calls in a cycle, which only a broken text has, count as nothing."""
        if name not in self._known:
            self._known[name] = Span()
            computation = self.module.computation(name)
            if computation is not None:
                self._known[name], self._activities[name] = self._run(computation.instructions)
        return self._known[name]

    def activities(self, name: str) -> tuple[Activity, ...]:
        """Return the activities of one run of a computation, in order of time."""
        self.of(name)
        return self._activities.get(name, ())

    def seconds_of(self, work: Work) -> float:
        """Return the seconds that a device takes for some work: the slower of computing and memory."""
        chip, share = self.machine.chip, self.machine.share
        computing = work.flops / chip.figure("flops") + work.narrow / chip.figure("flops_int8")
        return max(computing, work.bytes / chip.figure("hbm_bandwidth")) / share

    def _run(self, instructions: Iterable[Instruction]) -> tuple[Span, tuple[Activity, ...]]:
        clock = waiting = 0.0
        copied = 0.0
        links = LinkClock()
        work, unknown = Work(), list[str]()
        done: list[Activity] = []
        exposed: defaultdict[int, float] = defaultdict(float)
        pending: dict[str, int] = {}
        for instruction in instructions:
            transfer = self._transfer(instruction)
            if transfer is not None:
                end = links.transfer(transfer.lanes, clock, transfer.seconds, transfer.transmitting)
                if _begins(instruction):
                    pending[instruction.name] = len(done)
                else:
                    waiting += end - clock
                    exposed[len(done)] = end - clock
                    clock = end
                done.append(Activity("links", instruction, end - transfer.seconds, end, 0.0, transfer.collectives))
                continue
            carried = [pending[operand] for operand in instruction.operands if operand in pending] if pending else []
            if carried:
                last = max(carried, key=lambda number: done[number].end)
                if not _ends(instruction):
                    pending[instruction.name] = last
                elif done[last].end > clock:
                    waiting += done[last].end - clock
                    exposed[last] += done[last].end - clock
                    clock = done[last].end
            rounds, names = self._callees(instruction)
            inner = sum(map(self.of, names), Span()).times(rounds or 1)
            own = self._workload.of(instruction)
            if instruction.opcode == "copy-start":
                begun = max(copied, clock)
                copied = begun + self.seconds_of(own)
                pending[instruction.name] = len(done)
                done.append(Activity("copies", instruction, begun, end=copied))
                work += own
                continue
            seconds = self.seconds_of(own) + inner.seconds
            if seconds:
                inside = self._in_turn(names)
                done.append(Activity("compute", instruction, clock, end=clock + seconds, rounds=rounds, inside=inside))
            clock += seconds
            waiting += inner.waiting
            unknown += inner.unknown
            if rounds is None:
                unknown.append(f"how often {instruction.name} loops")
            if not is_estimated(instruction):
                # The name of a kernel's instruction is XLA's, which takes it from what it finds around the kernel's.
                unknown.append(f"the time of {last_components(instruction.op_name or instruction.name)[0]}")
            work += own + inner.work
        end = max(clock, links.latest, copied)
        if end > clock:
            exposed[max(range(len(done)), key=lambda number: done[number].end)] += end - clock
        activities = (replace(each, exposed=exposed[n]) if exposed[n] else each for n, each in enumerate(done))
        return Span(end, waiting + end - clock, work, unknown=tuple(dict.fromkeys(unknown))), tuple(activities)

    def _transfer(self, instruction: Instruction) -> Transfer | None:
        """The collective that an instruction is or begins, or those that it has inside."""
        found = self._transfers.get((instruction.computation.name, instruction.name))
        if found is not None or instruction.opcode == "call" or does(instruction.opcode) is Does.BRANCH:
            return found
        for name in instruction.called:
            found = self._inside(name) or found
        return found

    def _inside(self, name: str, depth: int = 0) -> Transfer | None:
        """The collectives of a computation that runs as one instruction, and of those in it."""
        found = self._within.get(name)
        computation = self.module.computation(name) if found is None and depth < MAX_DEPTH else None
        for instruction in () if computation is None else computation.instructions:
            for called in instruction.called:
                inner = self._inside(called, depth + 1)
                found = found if inner is None else inner + found
        return found

    def _callees(self, instruction: Instruction) -> tuple[int | None, tuple[str, ...]]:
        """The computations that an instruction runs one after the other, and how often; None where that is unknown."""
        callees: Mapping[str, tuple[str, ...]] = instruction.callees
        match instruction.opcode:
            case "while":
                return trip_count(instruction, self.module), _named(callees, ("body", "condition"))
            case "conditional":
                return 1, (max(_named(callees, BRANCHES), key=lambda name: self.of(name).seconds, default=""),)
            case "call" | "async-start" | "call-start":
                return 1, _named(callees, ("to_apply", "calls", "called_computations"))
        return 1, ()

    def _in_turn(self, names: tuple[str, ...]) -> tuple[Activity, ...]:
        begun, found = 0.0, list[Activity]()
        for name in names:
            found += (replace(each, start=each.start + begun, end=each.end + begun) for each in self.activities(name))
            begun += self.of(name).seconds
        return tuple(found)


def _named(callees: Mapping[str, tuple[str, ...]], keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for key in keys for name in callees.get(key, ()))


def _begins(instruction: Instruction) -> bool:
    is_start = instruction.opcode.endswith("-start") or instruction.opcode == "send"
    return is_start or instruction.name.startswith("async-collective-start")


def _ends(instruction: Instruction) -> bool:
    """Return whether this instruction ends what was started; others pass it on."""
    if instruction.opcode == "fusion":
        return not instruction.name.startswith("async-collective") or "done" in instruction.name
    return instruction.opcode not in ("get-tuple-element", "tuple", "bitcast", "async-update")


NONE = Work()


class Span(Record, frozen=True):
    """The cost of a part of a program: seconds, those of them in which it waits for transfers, and its work.

    `unknown` names what is not in it: loops whose trip counts are not known, of which one round was counted, and
    kernels that say nothing of their time.
    """

    seconds: float = 0.0
    waiting: float = 0.0
    work: Work = NONE
    unknown: tuple[str, ...] = ()

    def __add__(self, other: Span) -> Span:
        return Span(
            self.seconds + other.seconds,
            self.waiting + other.waiting,
            self.work + other.work,
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
        )

    def times(self, count: int) -> Span:
        """So many of it, one after the other."""
        work = Work(self.work.flops * count, self.work.narrow * count, self.work.bytes * count)
        return Span(self.seconds * count, self.waiting * count, work, unknown=self.unknown)


class Transfer(Record, frozen=True):
    """The time that some collectives take on some links, and how long these are busy."""

    seconds: float
    transmitting: float
    lanes: Lanes
    collectives: tuple[Collective, ...] = ()

    def __add__(self, other: Transfer | None) -> Transfer:
        if other is None:
            return self
        lanes = None if self.lanes is None or other.lanes is None else self.lanes | other.lanes
        seconds, transmitting = self.seconds + other.seconds, self.transmitting + other.transmitting
        return Transfer(seconds, transmitting, lanes, collectives=(*self.collectives, *other.collectives))


def transfer_of(collective: Collective, lanes: Lanes) -> Transfer:
    """That of one collective, which takes no time where nothing is known of its links."""
    estimate = collective.estimate
    if estimate is None:
        return Transfer(0.0, 0.0, lanes, collectives=(collective,))
    busy = estimate.seconds if estimate.transmitting is None else estimate.transmitting
    return Transfer(estimate.seconds, busy, lanes, collectives=(collective,))
