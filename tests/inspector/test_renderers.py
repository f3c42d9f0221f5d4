"""The registry of output formats: what it names is there, and the commands offer it."""

from __future__ import annotations

import argparse
from inspect import Parameter, signature

import pytest
from rich.console import Console
from shardscope.inspector.render.renderers import RENDERERS, Kind, renderer
from shardscope.inspector.render.table import Column, Detail, Row, Table
from shardscope.inspector.render.text.tables import code_lines, left_out, table_section

from shardscope.commands import load

OFFERED = {"console", "version", "around", "details"}

COMMANDS: dict[str, tuple[Kind, ...]] = {
    "run": ("report", "reports"),
    "open": ("report", "reports"),
    "diff": ("diff",),
    "check": ("verdicts",),
}


@pytest.mark.parametrize(("format", "kind"), [(name, kind) for name, each in RENDERERS.items() for kind in each])
def test_functions_are_there_and_take_what_is_on_offer(format: str, kind: Kind) -> None:
    found, function = renderer(format, kind)
    _, *others = signature(function).parameters.values()
    assert found == kind
    assert all(each.name in OFFERED or each.default is not Parameter.empty for each in others)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_offer_the_formats_that_can_show_what_they_do(command: str) -> None:
    parser = argparse.ArgumentParser()
    load(command).configure(parser)
    (choices,) = (action.choices for action in parser._actions if action.dest == "format")
    able = {name for name, functions in RENDERERS.items() if functions.keys() & set(COMMANDS[command])}
    assert choices is not None
    assert set(choices) - {"tui"} == able


@pytest.mark.parametrize("kinds", [("report", "reports"), ("comparison", "reports")])
def test_what_shows_one_target_shows_several(kinds: tuple[Kind, ...]) -> None:
    one = {name for name, functions in RENDERERS.items() if functions.keys() & {"report", "reports"}}
    assert one == {name for name, functions in RENDERERS.items() if functions.keys() & set(kinds)}


@pytest.mark.parametrize(("count", "text"), [(0, []), (1, ["and 1 more value"]), (2000, ["and 2,000 more values"])])
def test_what_is_left_out_is_counted(count: int, text: list[str]) -> None:
    assert list(map(str, left_out(count, "value"))) == text


def test_details_stand_under_their_row_and_end_at_the_edge() -> None:
    width = 24
    lines = ("Title", "  one  two", f"    {'x' * (width - 4)}", "    why: because", "    + added")
    details = [Detail("", "x" * (width - 4)), Detail("why", "because"), Detail("", "+ added", is_code=True)]
    columns, rows = (Column("a"), Column("b")), (Row(("one", "two")),)
    table = Table("t", "t", columns, rows, heading="Title", details=lambda _: details, in_full=True)
    console = Console(width=width)
    with console.capture() as printed:
        console.print(table_section(table))
    assert [line.rstrip() for line in printed.get().splitlines()] == [*lines]


def test_lines_of_a_diff_have_the_colours_that_git_gives_them() -> None:
    """All but the lines with the names of the files, which stand elsewhere."""
    diff = "--- a.py\n+++ b.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n-\n+"
    assert [(line.plain, str(line.style)) for line in code_lines(diff)] == [
        ("@@ -1,2 +1,2 @@", "dim"),
        (" same", ""),
        ("-old", "red"),
        ("+new", "green"),
        ("-", "red"),
        ("+", "green"),
    ]
