"""A report in a notebook: what a terminal shows, as HTML."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from ..report import Report
from .text import print_report

WIDTH = 140
"""Columns."""

FORMAT = "<pre style='line-height:1.25;overflow-x:auto;white-space:pre'><code>{code}</code></pre>"


def report_to_html(report: Report) -> str:
    """The text report with its colours; all that comes from the program is escaped."""
    console = Console(file=StringIO(), record=True, width=WIDTH, highlight=False, force_terminal=True)
    print_report(report, console)
    return console.export_html(inline_styles=True, code_format=FORMAT)
