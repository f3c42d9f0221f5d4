"""The tables of what devices held, as a document and the screen list it, and of what differs that should not."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.values import Probe, Probed, Shard
from shardscope.inspector.ir.types import JaxType
from shardscope.inspector.render.table import Table, amount_in, pieces, plain_text
from shardscope.inspector.render.tables.device_values import (
    MAX_HELD,
    alike_shards,
    devices,
    devices_text,
    divergences,
)
from shardscope.inspector.render.tables.value_sites import MAX_ITERATIONS, neighbour, value_sites
from shardscope.inspector.report import Divergence, ProbedValue
from shardscope.inspector.units import ranges_text

from .by_hand import at, column, report, texts

INT = JaxType("i32[]")


def probe(digests: str, **fields: Any) -> Probe:
    """A scalar on as many devices as there are letters: equal ones stand for equal bits."""
    shards = tuple(Shard(number, (number // 2, number % 2), digest) for number, digest in enumerate(digests))
    known = {"path": ("e",), "when": "after", "position": 0, "type": "i32[]", "dtype": "int32", "shape": ()}
    return Probe(**{**known, "axes": ("x", "y"), "shards": shards, **fields})


def value(digests: str, name: str = "v", line: int = 7, **fields: Any) -> ProbedValue:
    return ProbedValue(probe(digests, **fields), INT, name, "add", ("x",), at(line))


def divergence(**fields: Any) -> Divergence:
    known = {"equation": "e", "primitive": "add", "value": "v", "type": INT, "axis": "x", "declared": "type"}
    where = {"iteration": (), "devices": (0, 3), "is_first": True, "source": at(7)}
    return Divergence(**{**known, **where, **fields})


def roles(table: Table, title: str) -> list[str]:
    number = [each.title for each in table.columns].index(title)
    return [pieces(row.cells[number])[0].role for row in table.rows]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((3,), "3"),
        ((0, 1, 2, 3), "0–3"),
        ((8, 0, 2, 1), "0–2, 8"),
        ((0, 2, 4), "0, 2, 4"),
        ((5, 6), "5–6"),
        ((0, 1, 3, 4, 9), "0–1, 3–4, 9"),
    ],
)
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert ranges_text(numbers) == text


def test_devices_are_named_by_what_they_have_in_common() -> None:
    """Coordinates that all have, and the part of the first; the part may be left out."""
    whole = probe("aabb")
    assert devices_text(whole, (0, 1, 2, 3)) == "devices 0–3"
    assert devices_text(whole, (0, 1)) == "devices 0–1 x=0"
    assert devices_text(whole, (1, 3)) == "devices 1, 3 y=1"
    assert devices_text(whole, (2,)) == "device 2 x=1 y=0"
    parts = probe("ab", shards=(Shard(4, (0, 0), "a", "0:2, :"), Shard(5, (0, 1), "b", "2:4, :")))
    assert devices_text(parts, (1, 0)) == "devices 4–5 x=0 [2:4, :]"
    assert devices_text(parts, (1, 0), has_part=False) == "devices 4–5 x=0"


def test_equal_values_of_one_part_are_together() -> None:
    held = [Shard(n, (n,), digest, part) for n, (digest, part) in enumerate(("aP", "bP", "aQ", "aP", "bP"))]
    assert alike_shards(probe("", shards=tuple(held))) == [[0, 3], [1, 4], [2]]


@pytest.mark.parametrize(("count", "more"), [(MAX_HELD, []), (MAX_HELD + 1, ["and 1 more values"])])
def test_under_a_row_are_the_different_values(count: int, more: list[str]) -> None:
    one = value("abcdefghijklmnop"[:count])
    table = devices(report(probes=(one,)))
    details = table.details(one)
    assert [each.text for each in details[MAX_HELD:]] == more
    assert [each.label.split()[1] for each in details[:MAX_HELD]] == [str(number) for number in range(MAX_HELD)]
    assert table.details(None) == ()


def test_values_before_and_after_an_equation() -> None:
    """Those of arguments and outputs are for the screen only; without any other, a document says nothing."""
    found = (
        value("aaaa"),
        value("aabb", iteration=(2, 1)),
        value("abcd", "w"),
        value("aabb", path=(), when="output", name="[0]"),
    )
    table = devices(report(probes=found, divergences=(divergence(value="w"), divergence(is_first=False))))
    after = ["after", "add", "x"]
    assert texts(table) == [
        [*after, "", "v", "i32[]", "all equal", "model.py:7 step"],
        [*after, "2, 1", "v", "i32[]", "2 values", "model.py:7 step"],
        [*after, "", "w", "i32[]", "4 values", "model.py:7 step"],
        ["output", "add", "x", "", "[0]", "i32[]", "2 values", "model.py:7 step"],
    ]
    assert roles(table, "devices") == ["aside", "", "error", ""]
    assert [row.minor for row in table.rows] == [False, False, False, True]
    assert table.heading
    assert not devices(report(probes=found[3:])).heading


@pytest.mark.parametrize(
    ("shown", "probed", "note"),
    [
        ({"all-reduce": 1}, {"all-reduce": 1}, []),
        ({"all-reduce": 3, "b": 1, "c": 4}, {"all-reduce": 1, "a": 2, "b": 1}, ["+2 a, -2 all-reduce, -4 c"]),
    ],
)
def test_the_program_that_was_run_for_the_values(
    shown: dict[str, int], probed: dict[str, int], note: list[str]
) -> None:
    table = devices(report(capture=Capture(probed=Probed(shown, probed))))
    assert [plain_text(each).partition(": ")[2] for each in table.notes()] == note
    assert not [*devices(report()).notes()]


def test_what_differs_and_should_not() -> None:
    """The first of each, with the word of who says that it is the same; and how many follow from them."""
    first = (divergence(), divergence(declared="out_specs", iteration=(0, 2), devices=(4, 5)))
    for rest, note in ((0, []), (1, ["1 more value follows from these"]), (3, ["3 more values follow from these"])):
        found = divergences(report(divergences=(*first, *[divergence(is_first=False)] * rest)))
        assert texts(found) == [
            ["v = add", "i32[]", "x", "its type", "0 and 3", "", "model.py:7"],
            ["v = add", "i32[]", "x", "out_specs", "4 and 5", "0, 2", "model.py:7"],
        ]
        assert [plain_text(each) for each in found.notes()] == note
        assert found.heading
    assert not divergences(report(divergences=(divergence(is_first=False),))).heading


def test_sites_and_their_iterations() -> None:
    """A column for each iteration, different values before and after; arguments and outputs apart from equations."""
    found = (
        value("aabb", when="before"),
        value("aaaa"),
        value("abcd", path=("f",), iteration=(1,)),
        value("aaaa", path=("f",), iteration=(0,)),
        value("aabb", path=(), when="argument", name="p"),
        value("aaaa", path=(), when="output", name="q"),
        value("aaaa", path=(), when="output", name="r", position=1),
    )
    table = value_sites(report(probes=found))
    assert [each.title for each in table.columns] == ["", "value", "over", "values", "0", "1", "from"]
    assert column(table, "value") == ["v = add", "v = add", "argument p", "output q", "output r"]
    assert column(table, "values") == ["2→1", "", "2", "1", "1"]
    assert (column(table, "0"), column(table, "1")) == (["", "1", "", "", ""], ["", "4", "", "", ""])
    assert [amount_in(row.cells[3]) for row in table.rows] == [2, None, 2, 1, 1]
    assert [row.value for row in table.rows] == [1, 2, 4, 5, 6]
    assert all(row.minor for row in table.rows)
    assert table.total == 5
    none = roles(table, "values")
    assert none == ["", "aside", "error", "aside", "aside"]  # copies of an argument differ
    assert roles(table, "1")[1] == ""


@pytest.mark.parametrize("count", [MAX_ITERATIONS, MAX_ITERATIONS + 1])
def test_iterations_that_have_a_column(count: int) -> None:
    table = value_sites(report(probes=tuple(value("aa", iteration=(number,)) for number in range(count))))
    assert [each.title for each in table.columns][4:-1] == [str(number) for number in range(MAX_ITERATIONS)]


def test_the_mark_is_where_devices_first_differ() -> None:
    """Of a loop its first iteration with such a value is chosen; what follows from it is marked by colour alone."""
    found = tuple(
        value("aabb", name, path=(path,), iteration=(number,))
        for path, name in (("e", "v"), ("f", "w"), ("g", "u"))
        for number in range(3)
    )
    wrong = (
        divergence(equation="f", value="w", iteration=(1,)),
        divergence(equation="g", value="u", iteration=(2,), is_first=False),
    )
    table = value_sites(report(probes=found, divergences=wrong))
    assert column(table, "") == ["", "▲", ""]
    assert [row.value for row in table.rows] == [0, 4, 8]
    assert table.first == 1
    assert [roles(table, each) for each in "012"] == [["", "", ""], ["", "error", ""], ["", "", "error"]]
    assert value_sites(report(probes=found)).first == 0


def test_copies_of_one_part_that_differ() -> None:
    """Of arguments each is a first difference; of results the first, where no argument and no divergence is known."""
    argument = value("aabb", path=(), when="argument", name="p")
    results = tuple(value("aabb", path=(), when="output", name=name, position=n) for n, name in enumerate("qr"))
    assert column(value_sites(report(probes=results)), "") == ["▲", ""]
    assert column(value_sites(report(probes=(argument, *results))), "") == ["▲", "", ""]
    known = (value("aabb"), *results)
    assert column(value_sites(report(probes=known, divergences=(divergence(),))), "") == ["▲", "", ""]
    assert column(value_sites(report(probes=known, divergences=(divergence(equation="other"),))), "") == ["", "▲", ""]
    equal = tuple(value("aaaa", path=(), when="output", name=name, position=n) for n, name in enumerate("qr"))
    assert column(value_sites(report(probes=(argument, *equal))), "") == ["▲", "", ""]


def test_the_same_value_in_the_next_iteration() -> None:
    """By iteration, not by the order of recording; of this operand or result alone."""
    order = (2, 0, 1)
    found = tuple(
        value("aa", path=path, when=when, position=position, iteration=(number,))
        for number in order
        for path, when, position in (
            (("e",), "after", 0),
            (("e",), "before", 0),
            (("e",), "after", 1),
            (("f",), "after", 0),
        )
    )
    for number, each in enumerate(found):
        (iteration,) = each.probe.iteration
        for step in (1, -1):
            there = neighbour(found, number, step)
            if not 0 <= iteration + step < len(order):
                assert there is None
            else:
                assert there is not None
                assert there == order.index(iteration + step) * 4 + number % 4
