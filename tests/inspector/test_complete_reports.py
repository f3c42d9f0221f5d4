"""Complete reports of kept captures, and of what is left of some where a part is missing, as they were approved.

Of each report the text is kept, long paragraphs cut, and a number for each section in every other format and for the
links of each line of the program. `make approve` renews them: look at what changes in the texts, and ask of a number
that changes alone what it is of. `python -m tests.inspector.complete.kept FILE…` keeps more captures.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import chain, count, islice, product

import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.diff.targets import compare as compared
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.html import report_page
from shardscope.inspector.render.json import to_json
from shardscope.inspector.render.json.diff import diff_to_json
from shardscope.inspector.render.markdown import diff_to_markdown, to_markdown
from shardscope.inspector.render.sarif import to_sarif
from shardscope.inspector.render.tables import TABLES, comparison
from shardscope.inspector.render.tables.traces import programs
from shardscope.inspector.render.text import print_report
from shardscope.inspector.render.text.comparison import print_diff
from shardscope.inspector.render.why_lines import cause_line, why_line
from shardscope.inspector.report import Report
from shardscope.inspector.report.places import Place, StagePlace
from shardscope.inspector.report.traces import Trace
from shardscope.inspector.selection.selection import linked
from shardscope.parsers.source import Source

from tests.sweeps import sampled

from .complete import kept

pytestmark = pytest.mark.once

APPROVED = kept.ARCHIVE.with_name("approved")
ALL = ("all",)
MAX_LINES = 10
"""Lines of a paragraph that are kept; of the others there is a number."""

WIDTHS = (60, 90, 240)
"""Columns that a terminal may have: which of a table's columns are left out, and which parts are cut."""

MAX_PLACES = 120
"""Lines of a stage whose links are looked at."""

CHANGED = ("cube", "combined", "narrow.program.tpu", "gather_then_slice.faulty.tpu", "all_gather.stacked.tpu")

LONG_NUMBER = re.compile(r"\d+\.\d{6,}(?:e[+-]\d+)?")

CHANGES = {
    "a line is gone": (rb"(?m)^ +\S.*\n(?! *[})])", lambda _: b""),
    "a dimension is gone": (rb"(?<=\[)\d+,(?=\d+[\],])|(?<=<)\d+x(?=\d+x)", lambda _: b""),
    "a number is zero": (rb"(?<![\w.\"-])[1-9]\d*(?![\w.\"])", lambda _: b"0"),
    "a number is doubled": (rb"(?<![\w.\"-])[1-9]\d{0,9}(?![\w.\"])", lambda found: b"%d" % (2 * int(found[0]))),
    "an attribute is gone": (rb", [a-z_]+=(?:\{[^{}\n]*\}|[\w.]+)(?=[,\n])", lambda _: b""),
    "a list is empty": (rb"(?<=[={\[])\d+(?:, ?\d+)*(?=[}\]])", lambda _: b""),
    "an operation is another": (
        rb"(?<= )(?:add|multiply|slice|dot|reduce|reshape|bitcast|convert)(?=\()",
        lambda _: b"sort",
    ),
}
"""What is changed at every so many of the places in a text: a pattern, and what is put there."""

EVERY = (2, 7)

WITHOUT = ("missing_reduce_scatter.faulty.tpu", "gather_then_slice.faulty")


def number_of(value: object) -> str:
    """A checksum; of long numbers nine digits count, as Python 3.12 adds floats up more precisely than those before."""
    text = LONG_NUMBER.sub(lambda found: f"{float(found[0]):.9g}", json.dumps(value, sort_keys=True))
    return f"{zlib.crc32(text.encode()):08x}"


@pytest.mark.parametrize("name", sampled(kept.names(), 8))
def test_reports(name: str, request: pytest.FixtureRequest) -> None:
    report = inspect(kept.kept(name))
    compare(name, text_of(report), dict(sections(report, name)), request)


@pytest.mark.once
@pytest.mark.parametrize("name", sampled(WITHOUT, 1))
def test_what_is_left_without_a_part(name: str, request: pytest.FixtureRequest) -> None:
    found = {}
    for part, capture in without_a_part(kept.kept(name)):
        report = inspect(capture)
        found[part] = number_of([to_json(report, ALL).decode(), text_of(report)])
    compare(f"{name}.without", "", found, request)


@pytest.mark.once
@pytest.mark.parametrize("name", sampled(CHANGED, 2))
def test_what_is_left_of_texts_that_are_changed(name: str, request: pytest.FixtureRequest) -> None:
    """Texts that still look like programs, and are none: all is read, and the report says the same of it."""
    found = {}
    for change, capture in with_changes(kept.kept(name)):
        report = inspect(capture)
        found[change] = number_of([to_json(report, ALL).decode(), text_of(report)])
    compare(f"{name}.changed", "", found, request)


def test_layouts_of_tables(request: pytest.FixtureRequest) -> None:
    """The least width of each column, and which is left out first: few captures need as many as to show it."""
    lines = []
    report = inspect(kept.kept("cube"))
    of_targets = (compared(["cpu"] * number, [report] * number) for number in (2, 5))
    others = (
        comparison.communication(diff(report, report), ()),
        *map(comparison.collectives_by_cause, of_targets),
        programs(Trace(("python",), (), ())),
    )
    for table in chain((make(report) for make in TABLES), others):
        lines.append(
            f"{table.id}: {table.title}, key {table.key!r}, {table.most} of a {table.unit}, first {table.first}"
        )
        lines += [
            f"  {each.title!r} {each.least} {each.importance} {each.align} {each.where}" for each in table.columns
        ]
    compare("layouts", "\n".join(lines), {}, request)


def compare(name: str, text: str, numbers: Mapping[str, str], request: pytest.FixtureRequest) -> None:
    """Compare a report with what is kept of it, or keep it."""
    listed = "".join(f"{section} {number}\n" for section, number in numbers.items())
    path = APPROVED / name
    if request.config.getoption("--snapshot-update"):
        path.write_text(f"{text}\n{listed}")
    assert f"{text}\n{listed}".splitlines() == path.read_text().splitlines()


def text_of(report: Report) -> str:
    """The complete text, with long paragraphs cut."""
    text = _printed(lambda console: print_report(report, console, ALL))
    paragraphs = re.split(r"\n\s*\n", "\n".join(line.rstrip() for line in text.splitlines()))
    return "\n\n".join(map(_cut, paragraphs))


def _printed(write: Callable[[Console], None], width: int = 150) -> str:
    written = io.StringIO()
    write(Console(file=written, width=width, color_system=None))
    return written.getvalue()


def _cut(paragraph: str) -> str:
    lines = paragraph.splitlines()
    rest = lines[MAX_LINES:]
    return "\n".join([*lines[:MAX_LINES], *([f"… {len(rest)} more, {number_of(rest)}"] if rest else [])])


def sections(report: Report, name: str) -> Iterator[tuple[str, str]]:
    """The sections of the other formats, by name."""
    for section, value in json.loads(to_json(report, ALL)).items():
        yield f"json {section}", number_of(value)
    for width in WIDTHS:
        yield f"text in {width} columns", number_of(_printed(lambda console: print_report(report, console, ALL), width))
    yield "json without details", number_of(json.loads(to_json(report)))
    page = re.sub(r"(?s)<(style|script)>.*?</\1>", "", report_page(report).partition("<body")[2])
    for section in re.split(r"(?=<section)", page):
        title = re.search(r'id="([^"]*)"', section)
        yield f"html {'' if title is None else title[1]}", number_of(section)
    yield "markdown", number_of(to_markdown([report]))
    yield "sarif", number_of(json.loads(to_sarif([report], "0"))["runs"][0]["results"])
    for stage in report.program.stages:
        lines = (StagePlace(stage.name, match.start()) for match in re.finditer(rb"[^\s}].*", stage.text.data))
        yield f"links {stage.name}", number_of([_links(report, line) for line in islice(lines, MAX_PLACES)])
    found = chain(report.collectives, report.shardings, report.findings)
    yield "links", number_of([_links(report, each) for each in islice(found, MAX_PLACES)])
    names = kept.names()
    other = names[names.index(name) - 1]
    if name in WITHOUT or other.partition(".")[0] == name.partition(".")[0]:
        difference = diff(inspect(kept.kept(other)), report)
        yield f"diff {other}", number_of(json.loads(diff_to_json(difference)))
        yield f"diff {other} as text", number_of(_printed(lambda console: print_diff(difference, console)))
        yield f"diff {other} as markdown", number_of(diff_to_markdown(difference))


def _links(report: Report, place: Place) -> list[object]:
    parts: list[object] = []
    for stage in report.program.stages:
        each = linked(report, place, stage)
        parts += [stage.name, each.confidence, [[span.start, span.end] for span in each.spans]]
        parts += [[other.name for other in each.collectives], each.collective and each.collective.name]
        parts += [cause_line(cause, report) for cause in each.causes]
        parts += [why_line(why, "it", report) for why in each.why]
    return parts


def with_changes(capture: Capture) -> Iterator[tuple[str, Capture]]:
    """A capture with changes in all of its texts, those of the jaxpr but for what the numbers in it are places of."""
    for (change, (pattern, put)), every in product(CHANGES.items(), EVERY):

        def changed(
            stage: Stage, pattern: bytes = pattern, put: Callable[..., bytes] = put, every: int = every
        ) -> Stage:
            turns = count(1)
            data = re.sub(pattern, lambda found: found[0] if next(turns) % every else put(found), stage.source.data)
            return replace(stage, source=Source(stage.source.name, data))

        stages = tuple(each if each.dialect == "jaxpr" else changed(each) for each in capture.stages)
        yield f"{change}, one in {every}", replace(capture, stages=stages)


def without_a_part(capture: Capture) -> Iterator[tuple[str, Capture]]:
    """A capture without each of its parts."""
    empty = Capture(foreign=True)
    for field in fields(Capture):
        if getattr(capture, field.name) != getattr(empty, field.name) and field.name != "stages":
            yield field.name, replace(capture, **{field.name: getattr(empty, field.name)})
    for stage in capture.stages:
        yield stage.name, replace(capture, stages=tuple(other for other in capture.stages if other is not stage))
        alone = replace(empty, stages=(stage,), complete=True, subject=capture.subject)
        yield f"only {stage.name}", alone
        yield f"bare {stage.name}", replace(alone, subject=None)
