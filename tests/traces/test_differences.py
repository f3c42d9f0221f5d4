"""Differences between recorded programs: each field of a record alone, limits, and brute force over small traces."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
from shardscope.inspector.capture.protocol.trace import Backend, Called, CompiledProgram, Place
from shardscope.inspector.capture.protocol.trace import ProcessStarted as Started
from shardscope.inspector.capture.protocol.trace import Value as Argument
from shardscope.inspector.report.traces import Process, Program, Trace, ranks_text
from shardscope.inspector.traces.ranks import compare_ranks, first_other_call
from shardscope.inspector.traces.retracing import differences_of, retraced, why

PLAIN = CompiledProgram(
    0,
    "f",
    "f",
    Place("a.py", 1),
    arguments=(Argument("x", "f32[4]", "P('x')", mesh="x=2,y=1"),),
    static=("n=1",),
    devices=2,
    device_ids=(0, 1),
    structure="((*,), {})",
    function=7,
)

CHANGES = [
    ({"arguments": (Argument("x", "f32[8]", "P('x')", mesh="x=2,y=1"),)}, "x: f32[4] → f32[8]"),
    ({"arguments": (Argument("x", "f32[4]", "P('y')", mesh="x=2,y=1"),)}, "x: P('x') → P('y')"),
    (
        {"arguments": (Argument("x", "f32[4]", "P('x')", mesh="x=1,y=2"),)},
        "x: P('x') on mesh x=2,y=1 → P('x') on mesh x=1,y=2",
    ),
    ({"arguments": (Argument("x", "f32[4]"),)}, "x: P('x') → unspecified sharding"),
    (
        {"arguments": (Argument("x", "f32[4]", "P('x')", weak=True, mesh="x=2,y=1"),)},
        "x: f32[4] not weak → f32[4] weak",
    ),
    ({"arguments": (Argument("x", "f32[4]", "P('x')", donated=True, mesh="x=2,y=1"),)}, "x: not donated → donated"),
    ({"arguments": (Argument("x", "i32[]"),)}, "x: f32[4] P('x') → i32[] unspecified sharding"),
    ({"arguments": ()}, "x (gone)"),
    ({"arguments": (*PLAIN.arguments, Argument("y", "f32[]"))}, "y (new)"),
    ({"structure": "([*,], {})"}, "structure of the arguments: ((*,), {}) → ([*,], {})"),
    ({"static": ("n=2",)}, "static n=1 → n=2"),
    ({"static": ()}, "static n=1 → no n"),
    ({"bound": ("w=1.0",)}, "bound to no w → w=1.0"),
    ({"options": ("jax_enable_x64=True",)}, "option default jax_enable_x64 → jax_enable_x64=True"),
    ({"keywords": ("x",)}, "given by name: none → x"),
    ({"context": ("x=2",)}, "mesh in context: none → x=2"),
    ({"devices": 4, "device_ids": (0, 1, 2, 3)}, "2 → 4 devices"),
    ({"device_ids": (1, 0)}, "devices 0, 1 → devices 1, 0"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_one_field(change: dict[str, object], said: str) -> None:
    other = replace(PLAIN, **change)  # type: ignore[arg-type]
    assert list(differences_of(PLAIN, other)) == [said]
    assert why(PLAIN, other) == (said,)
    [back] = differences_of(other, PLAIN)
    assert back != said
    assert set(back.replace("(new)", "(gone)").split()) == set(said.replace("(new)", "(gone)").split())


def test_two_fields_are_two_differences() -> None:
    for (one, said), (two, also) in product(CHANGES, CHANGES):
        if not one.keys() & two.keys() and not {"structure", "device_ids"} & {*one, *two}:
            both = set(differences_of(PLAIN, replace(PLAIN, **{**one, **two})))  # type: ignore[arg-type]
            assert both == {said, also}, (one, two)


def test_what_is_no_difference() -> None:
    """What is not known of one of them, and the structure of arguments that differ anyway."""
    for silent in ({"structure": ""}, {"device_ids": ()}, {"number": 3, "id": "f.2"}, {"lower_seconds": 1.0}):
        other = replace(PLAIN, **silent)  # type: ignore[arg-type]
        assert not [*differences_of(PLAIN, other), *differences_of(other, PLAIN)]
    assert len([*differences_of(PLAIN, replace(PLAIN, structure="()", arguments=()))]) == 1


def test_what_makes_jax_compile_again_where_nothing_differs() -> None:
    anew = "another function object with the same arguments: it is created and jitted again for each"
    unknown = "nothing that is recorded: of a call that lowers ahead of time, static arguments may be unknown"
    for before, after, said in (
        ((7, 0), (7, 1), "jax.clear_caches() was called"),
        ((7, 0), (8, 1), "jax.clear_caches() was called"),
        ((7, 0), (8, 0), anew),
        ((7, 0), (7, 0), "nothing that is recorded"),
        ((0, 0), (7, 0), unknown),
        ((7, 0), (0, 0), unknown),
        ((0, 0), (0, 0), unknown),
    ):
        one, two = (replace(PLAIN, function=function, cleared=cleared) for function, cleared in (before, after))
        assert why(one, two) == (said,)


@pytest.mark.parametrize("number", range(1, 12))
def test_long_lists_are_cut_and_counted(number: int) -> None:
    """Differences from the ninth on, and arguments that differ alike from the fourth on; one is not left out alone."""
    static = tuple(f"n{each}=1" for each in range(number))
    found = why(replace(PLAIN, static=()), replace(PLAIN, static=static))
    assert [text for text in found if text.startswith("static")] == [
        f"static no n{each} → n{each}=1" for each in range(min(number, 8))
    ]
    assert found[8:] == ((f"and {number - 8} more",) if number > 8 else ())
    names = [f"a{each}" for each in range(number)]
    [said] = differences_of(
        replace(PLAIN, arguments=()), replace(PLAIN, arguments=tuple(Argument(name, "f32[]") for name in names))
    )
    assert said == f"{', '.join(names[:3])}{f' and {number - 3} more' if number > 3 else ''} (new)"
    ids = tuple(range(number))
    one = replace(PLAIN, devices=number, device_ids=ids)
    several = number > 1
    if several:
        [said] = differences_of(one, replace(one, device_ids=ids[::-1]))
        assert said == " → ".join(
            f"devices {', '.join(map(str, each[:3]))}{', …' if number > 3 else ''}" for each in (ids, ids[::-1])
        )
    else:
        assert [*differences_of(one, replace(one, device_ids=(5,)))] == ["device 0 → device 5"]


@pytest.mark.parametrize("at", range(0, 100, 7))
def test_of_long_structures_the_part_that_differs_is_shown(at: int) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(100))
    other = f"{text[:at]}*{text[at + 1 :]}"
    [said] = differences_of(replace(PLAIN, structure=text), replace(PLAIN, structure=other))
    one, two = said.removeprefix("structure of the arguments: ").split(" → ")
    assert one.startswith("…") == two.startswith("…") == (at > 15)
    shown, changed = one.removeprefix("…"), two.removeprefix("…")
    assert shown in text
    assert changed in other
    assert "*" in changed
    assert changed.index("*") == min(at, 15)
    assert len(shown) == min(60, 100 - max(0, at - 15))


def program(process: int, number: int, name: str = "f", **fields: object) -> Program:
    compiled = CompiledProgram(number, name if number == 0 else f"{name}.{number + 1}", name, **fields)  # type: ignore[arg-type]
    return Program(process, compiled, 1, {}, 0, None)


def test_the_program_before_that_is_nearest() -> None:
    """Which of three programs of other static arguments a fourth is compared with: the one with fewest differences."""
    values = [("a=1", "b=1", "c=1"), ("a=2", "b=2", "c=1"), ("a=3", "b=3", "c=3")]
    for last in product(("a=1", "a=2", "a=3"), ("b=1", "b=2", "b=3"), ("c=1", "c=3")):
        programs = [program(0, number, static=static) for number, static in enumerate([*values, last])]
        [found] = retraced(Trace((), (Process(Started(1, (), "3", 0.0)),), tuple(reversed(programs))))
        assert [each.compiled.number for each in found.programs] == [0, 1, 2, 3]
        fewest = min(sum(one != two for one, two in zip(value, last, strict=True)) for value in values)
        assert len(found.reasons) == 3
        assert len(found.reasons[-1]) == max(fewest, 1)


def test_what_is_compiled_more_than_once() -> None:
    """By process, name and place; dearest first, of which the first compilation counts nothing."""
    programs = (
        program(0, 0, "once", compile_seconds=50.0),
        program(0, 1, "cheap", compile_seconds=9.0),
        program(0, 2, "cheap", compile_seconds=1.0),
        program(0, 3, "dear", compile_seconds=1.0),
        program(0, 4, "dear", compile_seconds=2.0),
        program(0, 5, "dear", compile_seconds=3.0),
        program(0, 6, "own", internal=True),
        program(0, 7, "own", internal=True),
        program(0, 8, "made", transformed=True),
        program(0, 9, "made", transformed=True),
        program(1, 10, "once"),
    )
    found = retraced(Trace((), (Process(Started(1, (), "3", 0.0)), Process(Started(2, (), "3", 0.0))), programs))
    assert [(each.name, each.compile_seconds) for each in found] == [("dear", 5.0), ("cheap", 1.0)]


def ranks(*orders: str, ended: bool = True, **fields: object) -> Trace:
    """Processes each of which compiles and calls programs that are named by letters; `-` is a call of none."""
    processes, programs = [], []
    for rank, order in enumerate(orders):
        names = sorted(set(order))
        called = tuple(Called(names.index(name), Place("a.py", 1)) for name in order)
        processes.append(Process(Started(rank, (), "3", 0.0, rank), called=called, has_ended=ended))
        for number, name in enumerate(names):
            compiled = CompiledProgram(number, name, name, processes=2, fingerprint=name, **fields)  # type: ignore[arg-type]
            programs.append(Program(rank, compiled, 1, {"all-reduce": 2}, 0, None))
    return Trace((), tuple(processes), tuple(programs))


@pytest.mark.parametrize("ended", [True, False])
def test_calls_of_ranks_by_brute_force(ended: bool) -> None:
    """Three ranks that call two programs, each of which all of them have, up to three times more."""
    for calls in product(("ab", "aba", "abb", "abab", "ba"), repeat=3):
        trace = ranks(*calls, ended=ended)
        rows = [[each[number : number + 1] for each in calls] for number in range(4)]
        expected = next(
            (number for number, row in enumerate(rows) if len({*row} - {""}) > 1 or (ended and "" in row and any(row))),
            None,
        )
        assert first_other_call(dict(enumerate(calls)), dict.fromkeys(range(3), ended)) == expected
        found = compare_ranks(trace).divergences
        if expected is None:
            assert found == ()
            continue
        [only] = found
        assert (only.kind, only.title) == ("calls", f"call {expected + 1} of a program of several processes differs")
        sides = {rank: side for side in only.sides for rank in side.ranks}
        for rank, call in enumerate(rows[expected]):
            several = len(sides[rank].ranks) > 1
            if call:
                assert sides[rank].text == f"{'call' if several else 'calls'} {call} (2 all-reduce)"
                assert sides[rank].place == Place("a.py", 1)
            else:
                words = f"{'make' if several else 'makes'} no further call"
                assert sides[rank].text == (words if ended else "had made no further call")
        sizes = [len(side.ranks) for side in only.sides]
        assert sizes == sorted(sizes, reverse=True)


def test_where_the_order_of_calls_is_not_known_it_is_not_compared() -> None:
    trace = ranks("ab", "ba")
    unordered = replace(trace, processes=tuple(replace(each, is_order_known=False) for each in trace.processes))
    assert [each.kind for each in compare_ranks(trace).divergences] == ["calls"]
    found = compare_ranks(unordered)
    assert found.divergences == ()
    assert found.unknown == (
        "calls of one function's programs could not be distinguished: their order was not compared",
    )
    assert compare_ranks(trace).same == 2


def backend(rank: int, of: int, **fields: object) -> Backend:
    return replace(Backend("0.1", "0.1", "cpu", "cpu", 8, rank, of, 4), **fields)  # type: ignore[arg-type]


def test_ranks_of_which_nothing_is_recorded() -> None:
    """Every set of ranks out of five, with the number of processes from the option or from JAX."""
    for present in product((False, True), repeat=5):
        known = [rank for rank, here in enumerate(present) if here]
        for expected in (5, None):
            processes = tuple(Process(Started(rank, (), "3", 0.0), backend(rank, 5)) for rank in known)
            found = compare_ranks(Trace((), processes, ()), expected).unknown
            silent = [rank for rank in range(5) if rank not in known]
            said = [text for text in found if text.startswith("nothing was recorded of")]
            if silent and (expected or known):
                assert said == [f"nothing was recorded of {ranks_text(silent)}"]
            else:
                assert said == []
            assert ("no program runs on devices of several processes" in found) == bool(known)


def test_a_process_that_did_not_join() -> None:
    processes = (
        Process(Started(1, (), "3", 0.0, 0), backend(0, 2)),
        Process(Started(2, (), "3", 0.0, 1), backend(0, 1)),
    )
    found = compare_ranks(Trace((), processes, ()))
    assert "rank 1 did not join the others: its JAX has one process" in found.unknown
    [only] = found.divergences
    assert (only.kind, only.title) == ("devices", "the processes have different devices or versions")
    assert [side.ranks for side in only.sides] == [(0,), (1,)]
    assert [side.text.split(", ")[2] for side in only.sides] == ["2 processes", "1 processes"]


def test_of_several_processes_of_a_rank_the_one_with_most_programs() -> None:
    processes = tuple(Process(Started(number, (), "3", 0.0, 0)) for number in range(3))
    for most in range(3):
        programs = [program(each, 0, fingerprint="f") for each in range(3) if each != most]
        programs += [program(most, number, fingerprint=f"{number}") for number in range(3)]
        assert compare_ranks(Trace((), processes, tuple(programs))).same == 3


def test_numbers_of_ranks_in_words() -> None:
    """Read back, the words are the ranks again."""
    for present in product((False, True), repeat=6):
        known = tuple(rank for rank, here in enumerate(present) if here)
        word, _, rest = ranks_text(known).partition(" ")
        read = []
        for part in filter(None, rest.split(", ")):
            first, _, last = part.partition("–")
            read += range(int(first), int(last or first) + 1)
            assert last != first
        assert tuple(read) == known
        assert word == ("rank" if len(known) == 1 else "ranks")
        assert all(
            two - one > 1 for one, two in pairwise(int(part.split("–")[-1]) for part in rest.split(", ") if part)
        )


def test_processes_of_one_run() -> None:
    """Ranks that are known, and each another; of those, programs that are alike are listed once."""
    for numbers in product((None, 0, 1), repeat=2):
        processes = tuple(Process(Started(each, (), "3", 0.0, rank)) for each, rank in enumerate(numbers))
        trace = Trace((), processes, (program(1, 0, fingerprint="f"), program(0, 0, fingerprint="f")))
        distributed = sorted(map(str, numbers)) == ["0", "1"]
        assert trace.is_distributed == distributed
        assert [each.on for each in trace.merged] == ([(0, 1)] if distributed else [(), ()])
        ids = {trace.id_of(each) for each in trace.programs}
        assert ids == ({"f", "1/f"} if distributed else {"0/f", "1/f"})
    assert not Trace((), processes[:1], ()).is_distributed
    alone = Trace((), processes[:1], (program(0, 0),))
    assert alone.id_of(alone.programs[0]) == "f"


def test_what_programs_send_in_all_calls() -> None:
    for wire, calls in product((None, 0, 3), (None, 0, 5)):
        found = replace(program(0, 0), wire_bytes=wire, calls=calls).total_wire
        assert found == (None if None in (wire, calls) else wire * calls)  # type: ignore[operator]
    for internal, collectives, reason in product((True, False), (None, {}, {"all-reduce": 1}), ("", "why")):
        each = replace(program(0, 0, internal=internal), collectives=collectives, reason=reason)
        assert each.is_helper == (internal and collectives == {} and not reason)


DIFFERENT = [
    ({"arguments": (Argument("x", "f32[8]"),)}, "the arguments differ", ["x: f32[4] P('x')", "x: f32[8]"]),
    ({"arguments": ()}, "the arguments differ", ["x: f32[4] P('x')", "0 arguments"]),
    ({"device_ids": (1, 0)}, "the order of the devices", ["devices 0, 1", "devices 1, 0"]),
    ({}, "options of the compiler", ["", ""]),
    ({"static": ("n=2",)}, "options of the compiler", ["", ""]),
]


@pytest.mark.parametrize(("change", "title", "texts"), DIFFERENT)
def test_programs_of_one_name_that_are_different(change: dict[str, object], title: str, texts: list[str]) -> None:
    """Of three ranks one has another: the two that have the same stand together, and each side where it is called."""
    for odd in range(3):
        processes, programs = [], []
        for rank in range(3):
            processes.append(Process(Started(rank, (), "3", 0.0, rank), has_ended=True))
            compiled = replace(PLAIN, call=Place("a.py", 10 + rank), fingerprint="odd" if rank == odd else "same")
            programs.append(Program(rank, replace(compiled, **change) if rank == odd else compiled, 1, {}, 0, None))  # type: ignore[arg-type]
        found = compare_ranks(Trace((), tuple(processes), tuple(programs)))
        assert found.same == 0
        [only] = found.divergences
        assert (only.kind, only.program) == ("program", "f")
        assert only.title == f"f is lowered to 2 different programs: {title}"
        others = tuple(rank for rank in range(3) if rank != odd)
        expected = {(odd,): texts[1], others: texts[0]}
        assert {side.ranks: side.text for side in only.sides} == expected
        assert {side.ranks: side.place for side in only.sides} == {
            ranks: Place("a.py", 10 + ranks[0]) for ranks in expected
        }


def test_of_arguments_that_differ_three_are_named() -> None:
    one, two = (tuple(Argument(f"a{n}", f"f32[{size}]") for n in range(5)) for size in (1, 2))
    processes = tuple(Process(Started(rank, (), "3", 0.0, rank)) for rank in range(2))
    same = Argument("same", "f32[]")
    programs = [
        Program(rank, replace(PLAIN, arguments=(same, *args), fingerprint=str(rank)), 1, {}, 0, None)
        for rank, args in enumerate((one, two))
    ]
    [only] = compare_ranks(Trace((), processes, tuple(programs))).divergences
    assert [side.text for side in only.sides] == [", ".join(f"a{n}: f32[{size}]" for n in range(3)) for size in (1, 2)]


def test_programs_that_only_some_ranks_have() -> None:
    """The words for one and for several; those of ranks that still run may come yet, where others differ already."""
    for having in ((0,), (0, 1)):
        for ended in (True, False):
            for diverging in (False, True):
                orders = ["ab" + "c" * (rank in having) for rank in range(2)] + ["ba" if diverging else "ab"]
                trace = ranks(*orders, ended=ended)
                found = compare_ranks(trace)
                assert found.same == 2
                [missing] = [each for each in found.divergences if each.kind == "missing"] or [None]
                if diverging and not ended:
                    assert missing is None
                    continue
                assert missing is not None
                several, without = len(having) > 1, tuple(rank for rank in range(3) if rank not in having)
                words = f"{'compile' if several else 'compiles'} c"
                assert missing.title == f"only {ranks_text(having)} {words}"
                assert [(side.ranks, side.text) for side in missing.sides] == [
                    (having, words),
                    (without, "do not" if len(without) > 1 else "does not"),
                ]


def test_calls_of_programs_that_are_not_known_are_passed_over() -> None:
    trace = ranks("ab", "ba")
    odd = tuple(replace(each, called=(Called(9), *each.called)) for each in trace.processes[:1])
    assert compare_ranks(trace) == compare_ranks(replace(trace, processes=(*odd, trace.processes[1])))


def test_the_rank_of_a_process() -> None:
    """JAX's own number, unless it knows of no other process; then that which the process was given."""
    for given, own in product((None, 5), (None, (0, 1), (1, 2))):
        known = None if own is None else backend(*own)
        assert Process(Started(1, (), "3", 0.0, given), known).rank == (1 if own == (1, 2) else given)
