"""Differences between processes that must run the same programs in the same order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import count, pairwise, zip_longest

from ..capture.protocol.trace import Place
from ..report.traces import Divergence, Process, Program, RankComparison, Side, Trace, _named, ranks_text
from ..units import grouped, plural, runs_text
from .retracing import differences_of, first_difference

MAX_ARGUMENTS = 3
"""Differing arguments that are named."""


def compare_ranks(trace: Trace, expected: int | None = None) -> RankComparison:
    """Compare all processes of JAX; `expected` is how many there should be."""
    processes = _by_rank(trace)
    programs = {rank: _shared(trace, number) for rank, number in processes.items()}
    by_rank = {rank: trace.processes[number] for rank, number in processes.items()}
    everywhere = set.intersection(*({each.compiled.fingerprint for each in own} for own in programs.values() or [[]]))
    found = [*_devices(by_rank), *_calls(by_rank, programs, everywhere), *_programs(programs, everywhere)]
    if any(each.kind != "missing" for each in found):  # what comes after a divergence may be missing for it alone
        ended = {rank for rank, process in by_rank.items() if process.has_ended}
        found = [each for each in found if each.kind != "missing" or ended.issuperset(each.sides[1].ranks)]
    return RankComparison(tuple(processes), len(everywhere), tuple(found), tuple(_unknown(by_rank, programs, expected)))


def first_other_call(sequences: Mapping[int, Sequence[Hashable]], ended: Mapping[int, bool]) -> int | None:
    """The number of the first call that ranks do not make alike; None while none is known.

    A rank that makes fewer calls than another differs from it only if it `ended`.
    """
    end = object()
    for number, calls in enumerate(zip_longest(*sequences.values(), fillvalue=end)):
        made = {call for call in calls if call is not end}
        has_ended = any(call is end and ended[rank] for rank, call in zip(sequences, calls, strict=True))
        if len(made) > 1 or (made and has_ended):
            return number
    return None


def _by_rank(trace: Trace) -> dict[int, int]:
    """The process of each rank; of several, such as those that prepare data, the one with most programs."""
    counts = [0] * len(trace.processes)
    for program in trace.programs:
        counts[program.process] += 1
    found: dict[int, int] = {}
    for number, process in enumerate(trace.processes):
        rank = process.rank
        if rank is not None and (rank not in found or counts[number] > counts[found[rank]]):
            found[rank] = number
    return dict(sorted(found.items()))


def _shared(trace: Trace, process: int) -> list[Program]:
    own = (each for each in trace.programs if each.process == process and each.compiled.fingerprint)
    return sorted(own, key=lambda each: each.compiled.number)


def _devices(processes: Mapping[int, Process]) -> Iterator[Divergence]:
    backends = {rank: process.backend for rank, process in processes.items() if process.backend is not None}
    described = {
        rank: f"{each.platform} ({each.device_kind}), {each.local_device_count} of {each.device_count} devices, "
        f"{each.process_count} processes, jax {each.jax}, jaxlib {each.jaxlib}"
        for rank, each in backends.items()
    }
    if len(set(described.values())) > 1:
        title = "the processes have different devices or versions"
        yield Divergence("devices", "", title, sides=_sides(described))


def _programs(programs: Mapping[int, list[Program]], everywhere: set[str]) -> Iterator[Divergence]:
    """Programs that are not on all ranks, paired by name in the order of compilation."""
    places: dict[tuple[str, int], dict[int, Program]] = {}
    for rank, own in programs.items():
        turns: dict[str, Iterator[int]] = defaultdict(count)
        for program in own:
            compiled = program.compiled
            if compiled.fingerprint not in everywhere:
                places.setdefault((compiled.name, next(turns[compiled.name])), {})[rank] = program
    for (name, _), by_rank in places.items():
        if len(by_rank) < len(programs):
            yield _missing(name, by_rank, tuple(programs))
        if len({each.compiled.fingerprint for each in by_rank.values()}) > 1:
            yield _different(name, by_rank)


def _missing(name: str, by_rank: Mapping[int, Program], ranks: tuple[int, ...]) -> Divergence:
    program = next(iter(by_rank.values()))
    without = tuple(rank for rank in ranks if rank not in by_rank)
    sides = (
        Side(tuple(by_rank), f"{_verb(by_rank, 'compile')} {name}", program.compiled.call, program=program),
        Side(without, _verb(without, "do") + " not"),
    )
    return Divergence("missing", name, f"only {ranks_text(tuple(by_rank))} {sides[0].text}", sides=sides)


def _different(name: str, by_rank: Mapping[int, Program]) -> Divergence:
    groups = grouped((program.compiled.fingerprint, rank) for rank, program in by_rank.items())
    firsts = [by_rank[ranks[0]] for ranks in groups.values()]
    title, described = _what_differs(firsts)
    sides = (
        Side(tuple(ranks), text, place or program.compiled.call, program=program)
        for ranks, program, (text, place) in zip(groups.values(), firsts, described, strict=True)
    )
    return Divergence("program", name, f"{name} is lowered to {len(groups)} different programs: {title}", tuple(sides))


def _what_differs(programs: Sequence[Program]) -> tuple[str, list[tuple[str, Place | None]]]:
    """The difference between programs of one function, and each program's part in it."""
    base, *others = [program.compiled for program in programs]
    changes = [change for other in others for change in differences_of(base, other)]
    if any(each.arguments != base.arguments for each in others):
        rows = zip_longest(*(each.arguments for each in (base, *others)))
        differing = list(dict.fromkeys(each.path for row in rows if len({*row}) > 1 for each in row if each))
        named = [
            ", ".join(
                f"{each.path}: {each.type} {each.spec or ''}".rstrip()
                for each in program.compiled.arguments
                if each.path in differing[:MAX_ARGUMENTS]
            )
            or plural(len(program.compiled.arguments), "argument")
            for program in programs
        ]
        return "the arguments differ", [(text, None) for text in named]
    found = first_difference(programs)
    if found is not None:
        static = f" ({'; '.join(changes)})" if changes else ""
        return f"the first differing operation{static}", [(each.text, each.place) for each in found]
    if any(each.device_ids != base.device_ids for each in others):
        orders = [f"devices {', '.join(map(str, program.compiled.device_ids))}" for program in programs]
        return "the order of the devices", [(text, None) for text in orders]
    return "options of the compiler", [("", None) for _ in programs]


def _calls(
    processes: Mapping[int, Process], programs: Mapping[int, list[Program]], everywhere: set[str]
) -> Iterator[Divergence]:
    """The first call that ranks make differently, of programs that all of them have."""
    if not all(process.is_order_known for process in processes.values()):
        return
    known = {rank: {each.compiled.number: each for each in own} for rank, own in programs.items()}
    calls = {
        rank: [
            (known[rank][call.number], call.call)
            for call in process.called
            if call.number in known[rank] and known[rank][call.number].compiled.fingerprint in everywhere
        ]
        for rank, process in processes.items()
    }
    sequences = {rank: [each.compiled.fingerprint for each, _ in own] for rank, own in calls.items()}
    at = first_other_call(sequences, {rank: process.has_ended for rank, process in processes.items()})
    if at is None:
        return
    made = {rank: own[at] if at < len(own) else None for rank, own in calls.items()}
    values = {rank: None if each is None else each[0].compiled.fingerprint for rank, each in made.items()}
    ids = {each.compiled.fingerprint: each.compiled.id for each in next(iter(programs.values()))}
    sides = tuple(
        _called(side.ranks, made[side.ranks[0]], ids, processes[side.ranks[0]].has_ended) for side in _sides(values)
    )
    name = next((each[0].compiled.name for each in made.values() if each is not None), "")
    yield Divergence("calls", name, f"call {at + 1} of a program of several processes differs", sides=sides)


def _called(
    ranks: tuple[int, ...], made: tuple[Program, Place | None] | None, ids: Mapping[str, str], has_ended: bool
) -> Side:
    """The calls of some ranks; ranks may number programs of one name differently, so they have the id of the first."""
    if made is None:
        return Side(ranks, f"{_verb(ranks, 'make')} no further call" if has_ended else "had made no further call")
    program, place = made
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted((program.collectives or {}).items()))
    name = ids[program.compiled.fingerprint]
    return Side(ranks, f"{_verb(ranks, 'call')} {name}{f' ({kinds})' if kinds else ''}", place, program=program)


def _sides(values: Mapping[int, Hashable]) -> tuple[Side, ...]:
    """One side for each value, with the ranks that have it; the most common comes first."""
    groups = grouped((value, rank) for rank, value in values.items())
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return tuple(Side(tuple(ranks), str(value)) for value, ranks in ordered)


def _unknown(
    processes: Mapping[int, Process], programs: Mapping[int, list[Program]], expected: int | None
) -> Iterator[str]:
    most = expected or next((each.backend.process_count for each in processes.values() if each.backend), 0)
    known = sorted(rank for rank in processes if 0 <= rank < most)
    silent = [(last + 1, following - 1) for last, following in pairwise([-1, *known, most]) if following - last > 1]
    if silent:
        yield f"nothing was recorded of {_named(runs_text(silent))}"
    alone = tuple(rank for rank, each in processes.items() if each.backend and each.backend.process_count == 1)
    if alone:
        yield f"{ranks_text(alone)} did not join the others: its JAX has one process"
    if not all(process.is_order_known for process in processes.values()):
        yield "calls of one function's programs could not be distinguished: their order was not compared"
    if processes and not any(programs.values()):
        yield "no program runs on devices of several processes"


def _verb(ranks: Collection[int], verb: str) -> str:
    """`compiles` for one rank, `compile` for several."""
    return verb if len(ranks) > 1 else f"{verb}{'es' if verb == 'do' else 's'}"
