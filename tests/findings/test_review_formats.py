"""SARIF, GitHub's annotations and Markdown: what they hold, and that nothing from outside breaks out of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from markdown_it import MarkdownIt
from shardscope.inspector.capture.model import Capture, Failure, Subject
from shardscope.inspector.findings.rules import RULES
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.github import command, to_github
from shardscope.inspector.render.markdown import code, plain, to_markdown
from shardscope.inspector.render.printable import printable
from shardscope.inspector.render.sarif import to_sarif
from shardscope.inspector.report import (
    Experiment,
    Explanation,
    Finding,
    FindingPlace,
    Fix,
    Report,
    SourcePosition,
    Suppressed,
    Suppression,
)
from shardscope.inspector.report.policy import Policy
from shardscope.parsers.source import Frame, Source

from tests.conftest import SampleCapture
from tests.inspector.complete.kept import kept

pytestmark = pytest.mark.once

PIECES = [
    *["::error::x", "%0A", "%25", "\n", "\r\n", "\r", ",", ":", "file=", "\x1b[31m", "\u202e", "\ud800", "é", "日本"],
    *["`", "```", "~~~", "|", "\\", "*a*", "_b_", "[a](http://b)", "<b>", "<!--", "-->", "&lt;", "#1", "@you"],
    *["https://x.yz", "www.x.yz", "- a", "1. b", "===", "---", "    code", "$x$", "{0}", "{", "}", "![i](j)", "a@b.cc"],
]
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), min_size=1, max_size=6).map("".join)


def found_with(text: str, file: str, line: int = 3) -> Finding:
    place = FindingPlace(text, SourcePosition((Frame(file, text, line, line, 1, 4), Frame(file, "g", 9)), "exact"))
    return Finding(
        "SS01",
        "missing-reduce-scatter",
        "warning",
        "likely",
        (text,),
        text,
        place,
        (place,),
        ((text, text),),
        (Fix(text),),
    )


def report_with(text: str, file: str) -> Report:
    found = found_with(text, file)
    subject = Subject(text, file, "cpu", "cpu", 8)
    known = Suppressed(found, Suppression(file, 3, ("SS01",), text, 3, 3))
    return Report(Program(Capture(subject=subject)), findings=(found,), suppressed=(known,), rules=RULES)


# SARIF 2.1.0, what code scanning asks of it; section numbers are those of the standard.

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
URI = {"type": "string", "pattern": r"^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+$"}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {"type": "object", "required": ["uri"], "properties": {"uri": URI}},
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": {"type": "integer", "minimum": 1},
                },
            },
        }
    },
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
    "properties": {
        "message": TEXT,
        "level": {"enum": ["none", "note", "warning", "error"]},  # 3.27.10
        "ruleIndex": {"type": "integer", "minimum": 0},
        "locations": {"type": "array", "minItems": 1, "items": LOCATION},
        "relatedLocations": {"type": "array", "items": LOCATION},
        "stacks": {
            "type": "array",
            "items": {  # 3.44
                "type": "object",
                "required": ["frames"],
                "properties": {"frames": {"type": "array", "items": {"required": ["location"]}}},
            },
        },
        "suppressions": {  # 3.35
            "type": "array",
            "items": {"required": ["kind"], "properties": {"kind": {"enum": ["inSource", "external"]}}},
        },
        "fixes": {"type": "array", "items": {"required": ["artifactChanges"]}},  # 3.55
    },
}
ESSENTIALS = {
    "type": "object",
    "required": ["version", "$schema", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results", "invocations"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {"driver": {"type": "object", "required": ["name", "rules"]}},
                    },
                    "results": {"type": "array", "items": RESULT},
                    "invocations": {"type": "array", "items": {"required": ["executionSuccessful"]}},
                },
            },
        },
    },
}


def sarif(report: Report) -> dict:
    document = json.loads(to_sarif((report,), "1.0"))
    Draft7Validator(ESSENTIALS).validate(document)
    (run,) = document["runs"]
    return run


def test_sarif_of_a_finding(sample: SampleCapture) -> None:
    run = sarif(inspect(sample("missing_reduce_scatter:faulty")))
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "SS01"
    region = result["locations"][0]["physicalLocation"]["region"]
    line = sample("missing_reduce_scatter:faulty").script_text.text().splitlines()[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1].startswith("lax.psum(")


def test_regions_in_sarif() -> None:
    """Of each place that a file may have, and of some that it has not: a region in characters spans its bytes."""
    lines = ["a = f(é,", "", "  'ü€')  # é"]
    report = inspect(kept("combined"))
    found = report.findings[0]
    program = Program(replace(report.capture, script_text=Source("f.py", "\n".join(lines).encode())))
    for line, end_line, column, end_column in product(range(1, 5), range(1, 5), (0, 2, 8), (0, 2, 8)):
        frame = Frame("f.py", "", line, end_line, column, end_column)
        place = replace(found.place, source=SourcePosition((frame,), "exact"))
        one = replace(report, program=program, findings=(replace(found, place=place, related=(), fixes=()),))
        region = sarif(one)["results"][0]["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] == line
        is_there = end_line <= 3 and (line, min(column, 8 * (line != 2))) <= (
            end_line,
            min(end_column, 8 * (end_line != 2)),
        )
        assert ("endColumn" in region) == is_there, frame
        if is_there:
            cut = [list(each) for each in lines[line - 1 : end_line]]
            del cut[-1][region["endColumn"] - 1 :]
            del cut[0][: region["startColumn"] - 1]
            before = [each.encode() for each in lines[: line - 1]], [each.encode() for each in lines[: end_line - 1]]
            start = sum(map(len, before[0])) + line - 1 + min(column, len(lines[line - 1].encode()))
            end = sum(map(len, before[1])) + end_line - 1 + min(end_column, len(lines[end_line - 1].encode()))
            assert "\n".join(map("".join, cut)) == "\n".join(lines).encode()[start:end].decode()


def test_sarif_of_a_suppressed_finding(sample: SampleCapture) -> None:
    policy = Policy(elsewhere=(("*.py", frozenset(("SS01",))),), settings="pyproject.toml")
    (result,) = sarif(inspect(sample("missing_reduce_scatter:faulty"), policy))["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "per-path-ignores of *.py"}]


def test_sarif_of_a_failure() -> None:
    run = sarif(Report(Program(Capture(failure=Failure("function", "ValueError: no", "trace", hint="try")))))
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "ValueError: no\ntry"


@given(HOSTILE, HOSTILE)
def test_sarif_of_anything(text: str, file: str) -> None:
    run = sarif(report_with(text, file))
    told, suppressed = run["results"]
    assert "suppressions" in suppressed
    for each in run["results"]:
        message = each["message"]["text"]
        assert printable(message) == message
        # What a reader makes of it: no links, no placeholders (3.11.5, 3.11.6), and the very text.
        unescaped = re.sub(r"\\([\\\[\]])", r"\1", message).replace("{{", "{").replace("}}", "}")
        assert unescaped.startswith(printable(text))
        assert not re.search(r"(?<!\\)(?:\\\\)*\[", message)
    uri = told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert "\n" not in unquote(uri) or "\n" in file


# GitHub's annotations, read as the runner does: github.com/actions/runner, ActionCommand.

COMMAND = re.compile(r"::(?P<name>[a-z]+) (?P<properties>.*?)::(?P<data>.*)")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    found = []
    for line in text.splitlines():
        parts = COMMAND.fullmatch(line)
        assert parts is not None, line
        properties = dict(pair.split("=", 1) for pair in parts["properties"].split(","))
        codes = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}

        def decoded(value: str, codes: dict[str, str] = codes) -> str:
            return re.sub("|".join(codes), lambda code: codes[code[0]], value)

        found.append((parts["name"], {k: decoded(v) for k, v in properties.items()}, decoded(parts["data"])))
    return found


def shown(text: str) -> str:
    return printable(text.replace("\r\n", "\n"))


def test_github_of_a_finding(sample: SampleCapture) -> None:
    report = inspect(sample("missing_reduce_scatter:faulty"))
    ((name, properties, data),) = commands(to_github((report, report)))
    assert (name, properties["line"]) == ("warning", "23")
    assert properties["file"].endswith("samples/missing_reduce_scatter.py")
    assert data.startswith("f32[16,4] is summed over x")


def test_github_of_a_failure() -> None:
    failure = Failure("function", "ValueError: no", "trace", hint="try", stack=(Frame("f,g.py", "f", 7),))
    explanation = Explanation(
        "why",
        fixes=(
            Fix("cast it", experiment=Experiment("tried", "")),
            Fix("or not", experiment=Experiment("not helping", "")),
        ),
    )
    report = Report(Program(Capture(failure=failure)), explanation=explanation)
    ((name, properties, data),) = commands(to_github((report,)))
    assert (name, data) == ("error", "ValueError: no\ntry\nwhy\ntried: runs; no values to compare: cast it")
    assert (properties["file"], properties["line"]) == ("f,g.py", "7")
    assert sarif(report)["invocations"][0]["toolExecutionNotifications"][0]["locations"]


@given(HOSTILE, HOSTILE, HOSTILE)
def test_github_of_anything(title: str, file: str, message: str) -> None:
    ((name, properties, data),) = commands(command("warning", [("file", file), ("title", title)], message))
    assert (name, data) == ("warning", shown(message))
    assert properties == {"file": shown(file), "title": shown(title)}


@given(HOSTILE, HOSTILE)
def test_github_has_one_command_for_a_finding(text: str, file: str) -> None:
    assert len(commands(to_github((report_with(text, file),)))) == 1


# Markdown, read by markdown-it with tables and the links that GitHub makes by itself.

READER = MarkdownIt("gfm-like")
# GitHub, unlike this reader, makes no links of `script.py` and `//x.yz`, but does of what begins with `www.`.
READER.linkify.set({"fuzzy_link": False}).add("//", None)


class Rendered(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(markdown: str) -> Rendered:
    page = Rendered()
    page.feed(READER.render(markdown))
    page.close()
    return page


@given(HOSTILE)
def test_plain_text_stays_plain(text: str) -> None:
    page = rendered(plain(text))
    assert page.text.strip() == " ".join(printable(text).split())
    assert set(page.tags) <= {"p"}
    assert not re.search(r"(?<!\w)[@#]\w|www\.\w", plain(text), re.IGNORECASE)


@given(HOSTILE)
def test_plain_text_in_a_table(text: str) -> None:
    page = rendered(f"| a | b |\n| --- | --- |\n| {plain(text)} | x |")
    assert page.tags.count("td") == 2
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td"}


@given(HOSTILE)
def test_code_stays_in_its_block(text: str) -> None:
    (block,) = READER.parse(code(text, "diff"))
    assert (block.type, block.info) == ("fence", "diff")


@given(HOSTILE)
def test_markdown_of_anything(text: str) -> None:
    tags = set(rendered(to_markdown((report_with(text, f"{text}.py"),))).tags)
    assert tags <= {"h3", "p", "strong", "ul", "li", "br", "details", "summary"} | {
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }


def test_markdown_of_a_finding(sample: SampleCapture) -> None:
    report = inspect(sample("missing_reduce_scatter:faulty"))
    page = rendered(to_markdown((report,)))
    assert "Findings: 1 warning" in page.text
    assert "idea: lax.psum_scatter(a @ b, 'x', scatter_dimension=0, tiled=True)" in page.text
    assert page.tags.count("table") == 1


@pytest.mark.parametrize("format", ["sarif", "github", "markdown"])
def test_suppressed_findings_are_no_annotations(format: str) -> None:
    report = replace(report_with("a", "b.py"), findings=())
    assert to_github((report,)) == ""
    assert "1 suppressed" in to_markdown((report,))
