"""The tables of what a step takes by the cost model, and of what is alive when most memory is taken."""

from __future__ import annotations

from typing import Any

import pytest
from shardscope.inspector.capture.model import Capture, Memory
from shardscope.inspector.ir.types import ArrayType
from shardscope.inspector.render.table import Table, plain_text
from shardscope.inspector.render.tables.cost import cost, memory, term_text
from shardscope.inspector.report import HostTransfer, LiveValue, PeakMemory, SourcePosition
from shardscope.inspector.report.cost import Estimate, Term
from shardscope.inspector.report.report import OnDemand
from shardscope.inspector.targets.chips import Figure

from .by_hand import at, collective, of_step, report, texts

F32 = ArrayType("f32", (2,))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1e-6, "s", "1 µs"), (511.6, "B", "512 B"), (2e9, "B/s", "2 GB/s"), (0.123456, "", "0.1235"), (3.0, "", "3")],
)
def test_terms_of_a_formula(value: float, unit: Any, text: str) -> None:
    assert term_text(Term("V", value, unit, "")) == f"V = {text}"


def test_each_formula_is_listed_once() -> None:
    """Of what runs; the sources of its constants, and of the rooflines, are below."""
    one = Estimate(2.0, "chip", "V/B", (Term("V", 8, "B", "size"), Term("B", 4, "B/s", "speed", "book")))
    other = Estimate(3.0, "node", "t", (Term("t", 3, "s", "call", "nccl"), Term("B", 4, "B/s", "speed", "book")))
    listed = (
        collective(estimate=one),
        collective(estimate=one, name="again"),
        collective(estimate=other),
        collective(estimate=one, kind="all-gather"),
        collective(),
        collective(estimate=other, stage="stablehlo", kind="all-to-all"),
    )
    found = of_step(figures=(("compute", Figure(5e12, "sheet")),))
    table = cost(report(collectives=listed, cost=found))
    assert texts(table) == [
        ["2 s", "all-reduce", "tp", "chip", "V/B", "V = 8 B, B = 4 B/s"],
        ["3 s", "all-reduce", "tp", "node", "t", "t = 3 s, B = 4 B/s"],
        ["2 s", "all-gather", "tp", "chip", "V/B", "V = 8 B, B = 4 B/s"],
    ]
    assert [plain_text(each) for each in table.notes()] == [
        "B: speed (book)",
        "t: call (nccl)",
        "compute 5 T per second (sheet)",
    ]
    assert not [*cost(report(collectives=listed[4:], cost=found)).notes()]
    without = cost(report(collectives=listed))
    assert (without.rows, without.heading, without.above, [*without.notes()]) == ((), "", (), [])


@pytest.mark.parametrize(
    ("unknown", "least", "said"),
    [
        ((), "", ""),
        (("a",), "at least ", " (not known: a)"),
        (("a", "b"), "at least ", " (not known: a, b)"),
        (("a", "b", "c"), "at least ", " (not known: a, b and 1 more)"),
        (("a", "b", "c", "d"), "at least ", " (not known: a, b and 2 more)"),
    ],
)
def test_a_time_with_unknown_parts_is_a_bound(unknown: tuple[str, ...], least: str, said: str) -> None:
    table = cost(report(cost=of_step(unknown=unknown)))
    assert table.heading == f"Cost on v5p (cost model): {least}8 s per step{said}"
    (line,) = map(plain_text, table.above)
    assert line.endswith("communication 4 s, 500 ms exposed" + ("" if unknown else ": bound by communication"))
    assert line.startswith("compute 1 s (3 kFLOP) · memory 2 s (2 KiB)")


def alive(name: str, size: int, line: int = 0, **fields: Any) -> LiveValue:
    known = {"type": F32, "op_name": "", "direction": "forward", "opcode": "add"}
    source = at(line) if line else SourcePosition()
    return LiveValue(name, size, **{**known, "source": source, **fields})


def memory_of(*values: LiveValue, **fields: Any) -> Table:
    account = fields.pop("account", Memory(arguments=8, temporaries=4, aliased=2, code=0))
    return memory(report(capture=Capture(memory=account), on_demand=OnDemand(alive_at_peak=lambda: values), **fields))


def test_what_is_alive_at_the_peak() -> None:
    """Values of one type from one line together, the largest sum first; by line, operation or name."""
    table = memory_of(
        alive("a", 8, 7),
        alive("b", 9, 7, on_host=True),
        alive("c", 8, 7),
        alive("d", 10, op_name="jit(f)/dot"),
        alive("e", 11, direction="backward", type=None, opcode="argument"),
        alive("f", 12, 7, in_vmem=True),
    )
    assert texts(table) == [
        ["16 B", "2× add", "f32[2]", "fwd", "model.py:7"],
        ["12 B", "add", "f32[2] in VMEM", "fwd", "model.py:7"],
        ["11 B", "argument", "", "bwd", "e"],
        ["10 B", "add", "f32[2]", "fwd", "jit(f)/dot"],
        ["9 B", "add", "f32[2] on the host", "fwd", "model.py:7"],
    ]
    assert table.heading == "Memory per device"


def test_the_parts_of_the_memory() -> None:
    """The compiler's account, with the host's memory and the copies there; empty parts are left out."""
    there = (
        HostTransfer("t", "to host", F32, 8, 1, at(7)),
        HostTransfer("u", "from host", F32, None, 3, SourcePosition()),
        HostTransfer("v", "to host", F32, 8, None, at(7)),
    )
    assert memory_of().above == ("arguments 8 B · temporaries 4 B · aliased -2 B",)
    assert memory_of(peak=PeakMemory(0, None)).above == memory_of().above
    account = "arguments 8 B · temporaries 4 B · aliased -2 B · total 10 B"
    assert memory_of(peak=PeakMemory(10, None, host=0)).above == (account,)
    assert memory_of(peak=PeakMemory(10, None, 0, 6, there)).above == (
        f"{account} · peak 0 B",
        "host memory 6 B",
        "copied to host: 8 B, f32[2] (model.py:7)",
        "copied from host: ? × 3, f32[2] (u)",
        "copied to host: 8 B × ?, f32[2] (model.py:7)",
    )
    assert memory_of(account=Memory()).above == ("not reported by the compiler",)
    nothing = memory(report())
    assert (nothing.above, nothing.heading) == ((), "")
    assert nothing.empty_text
    assert not memory_of().empty_text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([alive("a", 6), alive("b", 4)], False),
        ([alive("a", 6), alive("b", 5)], True),
        ([alive("a", 6), alive("b", 5, on_host=True)], False),
        ([alive("a", 6), alive("b", 5, type=None)], False),
    ],
)
def test_values_that_share_memory(values: list[LiveValue], said: bool) -> None:
    """What is alive takes more than there is only where values share buffers; said where all types are known."""
    above = memory_of(*values, peak=PeakMemory(10, None)).above
    assert [plain_text(line).startswith("the values alive at the peak are 11 B together") for line in above[1:]] == [
        True
    ] * said


@pytest.mark.parametrize(
    ("size", "capacity", "said"),
    [
        (5, None, ""),
        (4, 500, ": fits, 4 B of 500 B (under 1%)"),
        (5, 500, ": fits, 5 B of 500 B (1%)"),
        (500, 500, ": fits, 500 B of 500 B (100%)"),
        (501, 500, ": DOES NOT FIT, 501 B of 500 B (100%)"),
    ],
)
def test_whether_it_fits(size: int, capacity: int | None, said: str) -> None:
    heading = memory_of(peak=PeakMemory(size, capacity)).heading
    assert heading == f"Memory per device{said}"
