"""Sections of a text report: one that is asked for is there, or says why it has nothing to show."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.renderers import SECTIONS
from shardscope.inspector.render.text import print_report
from shardscope.parsers.source import Source

PROGRAM = Source("module.hlo", b"HloModule m\n\nENTRY main {\n  ROOT a = f32[2]{0} parameter(0)\n}\n")


def _printed(*details: str) -> list[str]:
    text = io.StringIO()
    report = inspect(Capture(stages=(Stage("hlo", "hlo", PROGRAM),), complete=True))
    print_report(report, Console(file=text, width=120), details)
    return text.getvalue().split()


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_is_asked_for_is_there_or_says_why_it_has_nothing(section: str) -> None:
    plain, asked = _printed(), _printed(section)
    assert asked[: len(plain)] == plain
    assert len(asked) > len(plain) + 1
    assert asked[len(plain)] == section.capitalize()
