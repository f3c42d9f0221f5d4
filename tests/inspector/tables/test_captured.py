"""The tables of what was captured: arguments and outputs, messages, stages."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.model import (
    Capture,
    Failure,
    Message,
    Stage,
    Subject,
    Value,
)
from shardscope.inspector.render.tables.captured import (
    MAX_CHARACTERS,
    MAX_LINE,
    MAX_WORST,
    arguments,
    problems,
    stages,
    worst_problems,
)
from shardscope.inspector.report import PlacedMessage
from shardscope.parsers.source import Source

from .by_hand import at, finding, report, texts

SUBJECT = Subject("f", "/code/model.py", "cpu", "cpu", 4)


def test_arguments_and_outputs() -> None:
    """With the requested sharding and layout; without a request, what a type on an explicit mesh says."""
    given = (
        Value("a", "f32[2,4]", "P('x')", True, layout="(1, 0)"),
        Value("b", "f32[2@x,4]"),
        Value("c", "f32[2,4]", donated=True),
    )
    table = arguments(report(capture=Capture(subject=SUBJECT, arguments=given, outputs=(Value("result", "f32[]"),))))
    assert texts(table) == [
        ["in", "a", "f32[2,4]", "P('x'), layout (1, 0), donated"],
        ["in", "b", "f32[2@x,4]", "by its type"],
        ["in", "c", "f32[2,4]", "unconstrained, donated"],
        ["out", "result", "f32[]", "unconstrained"],
    ]
    assert table.heading
    assert arguments(report(capture=Capture(subject=SUBJECT))).empty_text == "The function has none."
    nothing = arguments(report())
    assert (nothing.heading, nothing.empty_text) == ("", "Not recorded in a dump.")


TEXTS = (
    Message("info", "a note", "trace"),
    Message("warning", "a warning\nin lines", "compile", "/code/model.py:3"),
    Message("error", "  an error ", "start"),
    Message("warning", "another", "run"),
)


def test_messages_by_how_bad_they_are() -> None:
    """The failure first, which has a place of its own in a document; then what is damaged; what is not read last."""
    failure = Failure("function", "ValueError: no", "trace", "\nTraceback\n", "do this")
    broken = Stage("hlo", "hlo", Source("f.hlo", b"?"))
    capture = Capture(failure=failure, damage="it ends", messages=TEXTS, stages=(broken,))
    table = problems(report(capture=capture))
    assert texts(table)[:-1] == [
        ["error", "ValueError: no", "", "tracing"],
        ["error", "the file is damaged, what follows is missing: it ends", "", ""],
        ["error", "an error", "", ""],
        ["warning", "a warning", "/code/model.py:3", "compiling"],
        ["warning", "another", "", "running"],
        ["info", "a note", "", "tracing"],
    ]
    level, _, where, phase = texts(table)[-1]
    assert (level, where, phase) == ("error", "f.hlo:1:1", "reading")
    assert [row.minor for row in table.rows] == [True, *[False] * 6]
    assert [(each.label, each.text) for each in table.details(failure)] == [("hint", "do this"), ("", "Traceback")]
    assert [each.is_code for each in table.details(table.rows[-1].value)] == [True]
    assert table.details("nothing") == ()
    assert problems(report(capture=Capture(failure=failure))).heading == ""
    assert problems(report(capture=Capture(messages=TEXTS))).heading == "Messages"


@pytest.mark.parametrize(
    ("text", "below"),
    [
        ("short", 0),
        ("x" * MAX_LINE, 0),
        ("x" * (MAX_LINE + 1), MAX_LINE + 1),
        ("a\nb", 3),
        ("x" * 30_000, MAX_CHARACTERS),
    ],
)
def test_the_whole_message_is_below_its_first_line(text: str, below: int) -> None:
    placed = PlacedMessage(Message("info", text, "run"), "donated: a", at(7))
    table = problems(report(messages=(placed,)))
    ((_, first, where, _),) = texts(table)
    assert (first, where) == (text.splitlines()[0][:MAX_LINE], "model.py:7")
    about, *rest = table.details(placed)
    assert (about.label, about.text) == ("about", "donated: a")
    assert [len(each.text) for each in rest] == [below] * bool(below)
    assert all(each.is_code for each in rest)


def test_what_the_overview_says_of_messages() -> None:
    """No notes, and none that a finding quotes already."""
    known = report(capture=Capture(messages=TEXTS))
    assert [row[1] for row in texts(worst_problems(known))] == ["an error", "a warning", "another"]
    assert worst_problems(known).most == MAX_WORST
    quoting = finding(evidence=(("compiler", "a warning\nin…"), ("other", "another")))
    quoted = report(capture=Capture(messages=TEXTS), findings=(quoting,))
    assert [row[1] for row in texts(worst_problems(quoted))] == ["an error", "another"]
    note = worst_problems(report(capture=Capture(messages=TEXTS[:1])))
    assert (note.rows, note.heading) == ((), "")
    assert worst_problems(known).heading == "Messages"


def test_stages_that_were_reached() -> None:
    text = b"HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}\n"
    capture = Capture(stages=(Stage("hlo", "hlo", Source("t", text)),))
    table = stages(report(capture=capture))
    assert texts(table) == [["hlo", "2", f"{len(text)} B", "", ""]]
    assert table.heading
    assert stages(report()).heading == ""
