"""Suggested shardings, as one reads them in a terminal."""

from __future__ import annotations

from rich.console import Console

from ...report.suggestions import Suggestions
from ...units import format_bytes
from ..overview import subject_text
from ..tables.suggestions import BEST, suggestion_details, suggestions
from .tables import code_lines, data, section, table_section


def print_suggestions(found: Suggestions, console: Console) -> None:
    """Print the rows, and the edits of the first best one that has any, with its cost."""
    console.print(data(subject_text(found.report), "bold"))
    console.print(table_section(suggestions(found)))
    best = [row for row in found.rows if row.is_best and row.requests is not None]
    written = next((row for row in best if row.edits), None)
    if written is None:
        if best:
            console.print(data(f"\nno edit is known that makes the requests of the rows marked {BEST}"))
        return
    after = written.experiment.after
    cost = f"{format_bytes(after.bytes)} sent, {format_bytes(after.memory)} of memory"
    for detail in suggestion_details(found, written):
        if detail.is_code:
            console.print()
            console.print(section(f"{cost}: {', '.join(written.requests or ())}", code_lines(detail.text)))
