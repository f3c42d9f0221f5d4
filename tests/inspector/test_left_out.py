"""Of long lists as many are shown as a limit allows, and the number of the others is said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Failure
from shardscope.inspector.capture.passes import Snapshots
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render import change_rows, markdown, why_lines
from shardscope.inspector.render.html import tables
from shardscope.inspector.render.markdown import to_markdown
from shardscope.inspector.render.tables import captured
from shardscope.inspector.render.text.tables import MAX_TRACEBACK, failure
from shardscope.inspector.report import Report

KEPT = Path(__file__).parent.parent / "command" / "approved" / "rare.capture"


@pytest.fixture(scope="module")
def report() -> Report:
    return inspect(load(str(KEPT)))


def said_to_be_left_out(text: str, words: str) -> int:
    found = re.findall(rf"and ([\d,]+) more {words}", text)
    return int(found[0].replace(",", "")) if found else 0


@pytest.mark.parametrize("count", [1, markdown.MAX_FINDINGS, markdown.MAX_FINDINGS + 1, markdown.MAX_FINDINGS + 7])
def test_findings_in_markdown(report: Report, count: int) -> None:
    found = tuple(replace(report.findings[0], message=f"number {number}.") for number in range(count))
    text = to_markdown([replace(report, findings=found)])
    shown = sum(f"number {number}." in text for number in range(count))
    assert shown == min(count, markdown.MAX_FINDINGS)
    assert shown + said_to_be_left_out(text, "findings?") == count


@pytest.mark.parametrize("count", [0, 1, tables.MAX_CODE, tables.MAX_CODE + 1, tables.MAX_CODE + 9])
def test_lines_of_code_in_html(count: int) -> None:
    page = tables._code([f"<{number}>" for number in range(count)])
    shown = sum(f"&lt;{number}&gt;" in page for number in range(count))
    assert shown == min(count, tables.MAX_CODE)
    assert shown + said_to_be_left_out(page, "lines?") == count


@pytest.mark.parametrize("side", ["arguments", "outputs"])
def test_arguments_and_outputs(report: Report, side: str) -> None:
    """The table has all of them; a document cuts it unless `--details` names it."""
    value = (*report.capture.arguments, *report.capture.outputs)[0]
    values = tuple(replace(value, path=f"number {number}.") for number in range(500))
    table = captured.arguments(inspect(replace(report.capture, **{side: values})))
    assert sum(str(row.cells[1]).startswith("number") for row in table.rows) == len(values)


@pytest.mark.parametrize("count", range(1, change_rows.MAX_TYPES + 4))
def test_types_of_a_change(count: int) -> None:
    names = [f"f32[{number}]" for number in range(count)]
    text = change_rows._several(names)
    shown = sum(name in text for name in names)
    left_out = re.findall(r"and (\d+) more", text)
    assert shown == min(count, change_rows.MAX_TYPES)
    assert shown + sum(map(int, left_out)) == count


@pytest.mark.parametrize("count", [1, why_lines.MAX_COLLECTIVES, why_lines.MAX_COLLECTIVES + 1])
def test_offences(report: Report, count: int) -> None:
    listed = [(report.collectives[0], 1)] * count
    lines = list(why_lines.offences(listed, report))
    each = len(list(why_lines.offences(listed[:1], report)))
    left_out = [line for line in lines if re.fullmatch(r"and \d+ more", line)]
    shown = (len(lines) - len(left_out)) // each
    assert shown == min(count, why_lines.MAX_COLLECTIVES)
    assert shown + sum(int(line.split()[1]) for line in left_out) == count


@pytest.mark.parametrize("left_out", [0, 1, 3])
def test_passes(left_out: int) -> None:
    messages = Snapshots((), left_out).messages
    assert [message.text.split()[0] for message in messages] == ([str(left_out)] if left_out else [])


@pytest.mark.parametrize("in_full", [False, True])
@pytest.mark.parametrize("count", [1, MAX_TRACEBACK, MAX_TRACEBACK + 1, 3 * MAX_TRACEBACK])
def test_lines_of_a_traceback(report: Report, count: int, in_full: bool) -> None:
    """The last ones are shown, since the innermost call and the message are there."""
    details = "".join(f"line {number}.\n" for number in range(count))
    failed = replace(report.capture, failure=Failure("function", "what is wrong", "trace", details))
    console = Console(width=100)
    with console.capture() as printed:
        console.print(failure(inspect(failed), in_full=in_full))
    text = printed.get()
    shown = [number for number in range(count) if f"line {number}. " in text]
    assert shown == [*range(count)][0 if in_full else -MAX_TRACEBACK :]
    assert len(shown) + said_to_be_left_out(text, "lines? above") == count
