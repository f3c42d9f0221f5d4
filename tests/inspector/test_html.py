"""HTML: one file that needs nothing else, in which what comes from outside stays text."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.capture.model import Capture, Execution, Failure, Message, OutputSummary, Subject, Value
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.diff.targets import compare
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.types import JaxType
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.html import comparison_page, diff_page, report_fragment, report_page
from shardscope.inspector.render.html.elements import script, style
from shardscope.inspector.render.printable import printable
from shardscope.inspector.report import (
    AxisEntry,
    Finding,
    FindingPlace,
    Fix,
    PlacedMessage,
    Report,
    SourcePosition,
    Suppressed,
    Suppression,
    VariableVariance,
)
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.parsers.source import Frame, Source

KEPT = Path(__file__).parent.parent / "tui" / "looks" / "fsdp_tp.capture"

OURS = {
    *("html", "head", "meta", "title", "style", "body", "div", "h1", "h2", "section", "article", "p", "span", "br"),
    *("table", "thead", "tbody", "tr", "th", "td", "pre", "dl", "dt", "dd", "ol", "li", "details", "summary"),
    *("nav", "a", "script", "b", "figure", "figcaption", "svg", "text", "path", "circle"),
}
CLASSES = {
    *("shardscope", "scroll", "right", "strong", "aside", "good", "warning", "error", "axis", "here", "short"),
    *("section", "mark", "opens", "more", "flow", "meshes", "on", "label", "apart", "way"),
    *(f"g{number}" for number in range(8)),
    *("lanes", "track", "lane", "bars", *(f"bar {lane}" for lane in ("compute", "links", "copies", "waits", "loop"))),
}
ATTRIBUTES = {
    *("class", "lang", "charset", "name", "content", "http-equiv", "id", "href", "open", "colspan", "role", "style"),
    *("title", "width", "height", "x", "y", "d", "cx", "cy", "r"),
}

PIECES = [
    *["<script>alert(1)</script>", '"', "'", "<", ">", "&", "&lt;", "<img src=x onerror=alert(1)>", "<!--", "-->"],
    *['" onmouseover="x', "</style>", "</title>", "</pre>", "</td>", "</div>", "]]>", "<?", "javascript:", "\u2028"],
    *["\x1b[31m", "\x00", "\u202e", "\u2066", "\ud800", "\r", "\n", "\x85", "日本", "{}", "style=", "<svg/onload=x>"],
]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), min_size=1, max_size=6).map("".join)


class Page(HTMLParser):
    """The elements, attributes and texts of a page; `open` are those that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.others: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)


def hostile_report(text: str) -> Report:
    frame = Frame(f"{text}.py", text, 1)
    source = SourcePosition((frame,), "exact")
    place = FindingPlace(text, source)
    found = Finding("SS01", text, "error", "likely", (text,), text, place, (place,), ((text, text),), (Fix(text),))
    capture = Capture(
        subject=Subject(text, f"{text}.py", text, "cpu", 8),
        script_text=Source(f"{text}.py", text.encode("utf-8", "replace")),
        arguments=(Value(text, text, text, True),),
        execution=Execution(outputs=(OutputSummary(text, text, text, values=text),), seconds=(), seeded_inputs=True),
        failure=Failure("function", text, "trace", details=text, hint=text),
    )
    variance = VariableVariance(
        "1",
        text,
        text,
        JaxType(text),
        (text,),
        (text,),
        (text,),
        source,
        True,
        (text,),
        (AxisEntry(text, "1", text, source),),
    )
    return Report(
        Program(capture),
        meshes=(MeshSyntax(((text, 8),)),),
        variance=(variance,),
        messages=(PlacedMessage(Message("error", text, "trace", text), text, source),),
        findings=(found,),
        suppressed=(Suppressed(found, Suppression(f"{text}.py", 3, ("SS01",), text, 3, 3)),),
    )


def assert_ours(page: Page) -> None:
    assert set(page.tags) <= OURS
    assert page.open == []
    assert page.others == []
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert all((value or "").startswith("#") for name, value in page.attributes if name == "href")
    anchors = [value for name, value in page.attributes if name == "id"]
    assert len(set(anchors)) == len(anchors)
    assert {value[1:] for name, value in page.attributes if name == "href" and value} <= set(filter(None, anchors))
    assert {value for name, value in page.attributes if name == "class"} <= CLASSES
    assert page.tags.count("style") <= 2


@given(HOSTILE)
def test_names_of_anything_stay_text(text: str) -> None:
    made = report_page(hostile_report(text))
    page = Page(made)
    assert_ours(page)
    assert printable(made) == made
    words = "".join(printable(text).split())
    assert words in "".join(page.text.split())


def test_a_page_needs_nothing_from_elsewhere() -> None:
    page = Page(report_page(inspect(load(str(KEPT)))))
    assert_ours(page)
    assert not {"link", "img", "iframe"} & set(page.tags)
    assert page.tags.count("script") == 1
    assert not any(word in style() + script() for word in ("url(", "@import", "fetch", "http", "eval", "innerHTML"))
    assert "prefers-color-scheme: dark" in style()
    assert ("name", "viewport") in page.attributes


def test_findings_come_first_and_tables_follow() -> None:
    page = Page(report_page(inspect(load(str(KEPT)))))
    headings = ["no findings", "Collectives in the compiled program", "Shardings", "Arguments and outputs", "Stages"]
    shown = page.text[page.text.index(headings[0]) :]
    assert sorted(headings, key=shown.index) == headings
    assert "reduce-scatter" in page.text
    assert {"batch", "feats"} <= set(page.text.split())


@pytest.mark.parametrize("text", ["<b>", "a & b"])
def test_comparisons_and_diffs(text: str) -> None:
    report = inspect(load(str(KEPT)))
    assert_ours(Page(comparison_page(compare((text, "b"), (report, report)))))
    found = diff(report, report)
    page = Page(diff_page(replace(found, after=replace(found.after, title=text))))
    assert_ours(page)
    assert text in page.text


def test_a_notebook_shows_a_part_of_a_page() -> None:
    page = Page(report_fragment(inspect(load(str(KEPT)))))
    assert page.tags[0] == "div"
    assert not {"html", "head", "body", "title"} & set(page.tags)
    assert_ours(page)
