"""Processes that run different programs: what is said of them is what JAX's own texts differ in."""

from __future__ import annotations

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import msgspec
import pytest
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.protocol.trace import Backend, Called, CompiledProgram, ProcessStarted, TraceOptions
from shardscope.inspector.capture.tracing import MAX_PROCESSES, devices_of_each, run_traced
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.render.html.comparison import ranks_page, trace_page
from shardscope.inspector.render.json.trace import ranks_json_schema, ranks_to_json
from shardscope.inspector.render.tables.traces import outcome
from shardscope.inspector.report.traces import Process, Program, Trace, ranks_text
from shardscope.inspector.traces.ranks import compare_ranks, first_other_call
from shardscope.inspector.traces.read import RankWatch, read_trace
from shardscope.tui.app import ScreenApp
from shardscope.tui.diff_screen import DiffScreen
from shardscope.tui.ranks_screen import RanksScreen
from shardscope.tui.text_view import TextView

from tests.inspector.test_html import Page, assert_ours
from tests.tui.conftest import Driver

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def trace(folder: Path) -> Trace:
    """Two processes, in which most programs differ."""
    command = (sys.executable, str(HERE / "diverging.py"), str(folder))
    options = TraceOptions(processes=2, target="cpu", compare=True, skew=3600.0)
    with (folder / "stdout").open("wb") as stdout:
        ended = run_traced(
            command, folder / "trace", options, 2, stdout, why_to_end=RankWatch(folder / "trace").why_to_end
        )
    assert ended.statuses == (0, 0)
    return read_trace(folder / "trace", command, ended.status, ended.seconds)


@pytest.fixture(scope="module")
def sides(trace: Trace) -> dict[tuple[str, str], dict[tuple[int, ...], tuple[str, str]]]:
    """By kind and program, what each group of ranks does, and the line of the script."""
    lines = (HERE / "diverging.py").read_text().splitlines()
    return {
        (each.kind, each.program): {
            side.ranks: (side.text, "" if side.place is None else lines[side.place.line - 1].strip())
            for side in each.sides
        }
        for each in compare_ranks(trace, 2).divergences
    }


def test_what_diverges_is_found_and_nothing_else(sides: dict[tuple[str, str], object]) -> None:
    differing = {("program", f"by_{what}") for what in ("index", "hash", "time", "shape", "devices")}
    assert set(sides) == differing | {("missing", "only_first"), ("calls", "evaluate"), ("calls", "clean")} & set(sides)
    assert {("missing", "only_first")} <= set(sides)
    assert len([kind for kind, _ in sides if kind == "calls"]) == 1


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("by_index", "return y * jax.process_index()"),
        ("by_hash", "x = x + number"),
        ("by_time", "return jnp.sum(x) + int(time.time())"),
    ],
)
def test_the_first_differing_operation_is_that_of_the_texts(
    folder: Path, sides: dict[tuple[str, str], dict[tuple[int, ...], tuple[str, str]]], name: str, line: str
) -> None:
    texts = [json.loads((folder / f"{rank}.json").read_text())[name] for rank in range(2)]
    first = next(pair for pair in zip_longest(*texts) if pair[0] != pair[1])
    assert sides["program", name] == {(rank,): (first[rank].strip(), line) for rank in range(2)}


def test_arguments_devices_and_calls(sides: dict[tuple[str, str], dict[tuple[int, ...], tuple[str, str]]]) -> None:
    texts = {key: {ranks: text for ranks, (text, _) in each.items()} for key, each in sides.items()}
    assert texts["program", "by_shape"] == {(0,): "x: f32[8,4] P('x')", (1,): "x: f32[16,4] P('x')"}
    forwards, backwards = texts["program", "by_devices"].values()
    assert forwards.removeprefix("devices ").split(", ") == backwards.removeprefix("devices ").split(", ")[::-1]
    assert texts["missing", "only_first"] == {(0,): "compiles only_first", (1,): "does not"}
    [calls] = [each for (kind, _), each in texts.items() if kind == "calls"]
    assert calls == {(0,): "calls evaluate (1 all-reduce)", (1,): "calls clean (1 all-reduce)"}


def test_one_list_of_all_processes(trace: Trace) -> None:
    on = {trace.id_of(program): program.on for program in trace.merged if not program.compiled.internal}
    assert on["clean"] == on["evaluate"] == (0, 1)
    assert on["by_index"] == on["only_first"] == (0,)
    assert on["1/by_index"] == (1,)
    messages = {message.text for process in trace.processes for message in process.messages}
    assert "jax.distributed.initialize(num_processes=64) was answered with 2" in messages


def test_the_page_has_each_difference_with_its_lines(folder: Path, trace: Trace) -> None:
    """The operations are those of the texts that JAX wrote in each process, the lines those of the script."""
    found = trace.ranks
    for made, has_lines in ((ranks_page(trace), True), (trace_page(trace), False)):
        page = Page(made)
        assert_ours(page)
        assert page.tags.count("article") == len(found.divergences)
        assert re.findall(r'id="difference-(\d+)"', made) == [str(n + 1) for n in range(len(found.divergences))]
        for name in ("by_index", "by_hash", "by_time"):
            texts = [json.loads((folder / f"{rank}.json").read_text())[name] for rank in range(2)]
            first = next(pair for pair in zip_longest(*texts) if pair[0] != pair[1])
            assert all(operation.strip() in page.text for operation in first)
        assert ("return y * jax.process_index()" in page.text) == has_lines
        assert "clean" in page.text


def _shown(views: list[TextView]) -> list[str | None]:
    """The lines that the cursors are on; None where there is no text."""
    return [view.text_of(view.cursor) if view.display else None for view in views]


@pytest.mark.once
async def test_the_screen_shows_both_lines_and_compares_the_programs(trace: Trace) -> None:
    found = trace.ranks
    lines = (HERE / "diverging.py").read_text().splitlines()
    app = ScreenApp(RanksScreen, trace, analyses())
    async with app.run_test(size=(120, 40)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: f"{len(found.divergences)} differences between ranks 0–1" in driver.text)
        for each in found.divergences:
            views = [app.screen.query_one(f"#ranks-{name}", TextView) for name in ("first", "other")]
            places = [side.place and lines[side.place.line - 1] for side in each.sides]
            await driver.until(
                lambda places=places, views=views: [v.text_of(v.cursor) or None for v in views] == places
            )
            assert all(side.text.split()[0] in driver.text for side in each.sides)
            await driver.press("down")
        await driver.press("g", "g", *(["down"] * [each.program for each in found.divergences].index("by_index")))
        await driver.press("enter")
        await driver.until(lambda: isinstance(app.screen, DiffScreen))
        assert "rank 0: by_index" in driver.text
        assert "rank 1: by_index" in driver.text
        await driver.press("escape", "g", "g", *(["down"] * [each.kind for each in found.divergences].index("missing")))
        await driver.press("enter")
        assert not isinstance(app.screen, DiffScreen)


async def test_no_difference_is_not_said_of_ranks_that_were_not_compared() -> None:
    backend = Backend("0", "0", "cpu", "cpu", 8, 1, 2)
    alone = Trace(("train.py",), (Process(ProcessStarted(1, (), "3", 0.0, 1), backend),), ())
    app = ScreenApp(RanksScreen, replace(alone, ranks=compare_ranks(alone, 2)), analyses())
    async with app.run_test(size=(80, 24)) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: "nothing was recorded of rank 0" in driver.text)
        assert "no differences" not in driver.text
        assert "do the same" not in driver.text
        await driver.press("enter", "full_stop", "down")


@pytest.mark.skipif(msgspec.__version__ < "0.20", reason="older msgspec writes its schemas otherwise")
def test_the_document_keeps_to_its_schema(trace: Trace) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "ranks.schema.json").read_text())
    assert schema == ranks_json_schema()
    jsonschema.Draft202012Validator(schema).validate(json.loads(ranks_to_json(trace)))


def test_calls_of_those_that_still_run() -> None:
    """A rank that is only slower does not differ; one that has ended does, and so does another call."""
    running, ended = {0: False, 1: False}, {0: False, 1: True}
    assert first_other_call({0: "ab", 1: "a"}, running) is None
    assert first_other_call({0: "ab", 1: "a"}, ended) == 1
    assert first_other_call({0: "abc", 1: "acb"}, running) == 1
    assert first_other_call({0: "", 1: ""}, ended) is None


def test_a_number_of_processes_is_not_believed_to_be_small() -> None:
    """It is in a file that may be anybody's: whoever counts up to it does not come back."""
    many = 10**18
    backend = Backend("0", "0", "cpu", "cpu", 8, 3, many)
    found = compare_ranks(Trace((), (Process(ProcessStarted(1, (), "3", 0.0), backend),), ()))
    assert f"nothing was recorded of ranks 0–2, 4–{many - 1}" in found.unknown


def test_words_and_numbers() -> None:
    assert ranks_text((3,)) == "rank 3"
    assert ranks_text((0, 1, 2, 5)) == "ranks 0–2, 5"
    assert ranks_text((0, 2)) == "ranks 0, 2"
    assert devices_of_each(4, None, "cpu") == 2
    assert devices_of_each(2, 8, "local") == 4
    assert devices_of_each(4, None, "tpu:v5p:2x2x2") == 2
    with pytest.raises(CaptureError, match="8 devices cannot be divided among 3 processes"):
        devices_of_each(3, 8, "cpu")


@pytest.mark.parametrize("processes", [-1, 0, 1, 2, MAX_PROCESSES, MAX_PROCESSES + 1, 10**9])
def test_as_many_processes_as_a_machine_can_hold(processes: int) -> None:
    with nullcontext() if 1 < processes <= MAX_PROCESSES else pytest.raises(CaptureError, match="from 2 to"):
        assert devices_of_each(processes, 2 * abs(processes), "cpu") == 2


def test_programs_of_one_name_are_told_apart_where_their_order_differs() -> None:
    """Each rank numbers them in its own order."""
    processes, programs = [], []
    for rank, order in enumerate(("ab", "ba")):
        called = (Called(0), Called(1))
        processes.append(Process(ProcessStarted(rank, (), "3", 0.0, rank), called=called, has_ended=True))
        for number, fingerprint in enumerate(order):
            id = "f" if number == 0 else "f.2"
            compiled = CompiledProgram(number, id, "f", processes=2, fingerprint=fingerprint)
            programs.append(Program(rank, compiled, 1, {}, 0, None))
    [found] = compare_ranks(Trace((), tuple(processes), tuple(programs))).divergences
    assert [(side.ranks, side.text) for side in found.sides] == [((0,), "calls f"), ((1,), "calls f.2")]


def test_who_has_a_program_and_who_has_not() -> None:
    """Of three ranks, each set of those that compile a program is distinguished from the others."""
    for having in ((0,), (1,), (0, 2), (1, 2), (0, 1, 2)):
        processes, programs = [], []
        for rank in range(3):
            processes.append(Process(ProcessStarted(rank, (), "3", 0.0, rank), has_ended=True))
            for number, name in enumerate(("f", "g")[: 2 if rank in having else 1]):
                compiled = CompiledProgram(number, name, name, processes=3, fingerprint=name)
                programs.append(Program(rank, compiled, 1, {}, 0, None))
        found = compare_ranks(Trace((), tuple(processes), tuple(programs))).divergences
        without = tuple(rank for rank in range(3) if rank not in having)
        missing = [each for each in found if each.kind == "missing"]
        assert [(each.program, [side.ranks for side in each.sides]) for each in missing] == (
            [("g", [having, without])] if without else []
        )


@pytest.mark.parametrize("ranks", range(4))
def test_nothing_is_said_of_fewer_processes_than_two(ranks: int) -> None:
    processes = [Process(ProcessStarted(rank, (), "3", 0.0, rank), has_ended=True) for rank in range(ranks)]
    said = outcome(compare_ranks(Trace((), tuple(processes), ()), ranks))
    assert said == (f"no differences found between ranks 0–{ranks - 1}" if ranks > 1 else "")
