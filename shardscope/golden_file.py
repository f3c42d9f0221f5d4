"""A golden beside a test: written on request, compared otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from shardscope.api import inspect_call
from shardscope.inspector.capture.output_file import written
from shardscope.inspector.check.budget import parse_budget
from shardscope.inspector.check.golden import golden_of, read_golden
from shardscope.inspector.check.verdict import judge
from shardscope.inspector.render.text.comparison import print_verdicts
from shardscope.inspector.report import Report
from shardscope.inspector.report.verdict import Verdict

WIDTH = 140
"""Columns of a failure's message."""


def compare_with_golden(
    path: Path,
    function: Callable[..., Any] | Report,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    budgets: Sequence[str],
    *,
    update: bool,
    validate: bool = False,
) -> tuple[Report, str]:
    """The report, and what is wrong in words, empty if nothing is. With `update` the file is written where it differs.

    Raises:
        CaptureError: the golden or a budget cannot be read.
    """
    limits = tuple(map(parse_budget, budgets))
    report = function if isinstance(function, Report) else inspect_call(function, args, kwargs, validate=validate)
    golden = read_golden(str(path)) if path.exists() else None
    verdict = judge(_name(report), report, golden, limits)
    if update:
        if golden is None or verdict.differs:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written(path) as file:
                file.write(golden_of(verdict.found))
        verdict = judge(_name(report), report, None, limits)
    elif golden is None:
        return report, f"no golden file {path}: run `pytest --shardscope-update` to write it"
    return report, "" if verdict.passed else _told(verdict, path)


def _told(verdict: Verdict, path: Path) -> str:
    text = StringIO()
    print_verdicts((verdict,), Console(file=text, width=WIDTH, highlight=False))
    shown = "\n".join(line.rstrip() for line in text.getvalue().splitlines())
    return f"{shown}\n\nif this is intended: pytest --shardscope-update ({path})" if verdict.differs else shown


def _name(report: Report) -> str:
    subject = report.capture.subject
    return "program" if subject is None else subject.function
