"""Suggested shardings, as one reads them in a terminal."""

from __future__ import annotations

from rich.console import Console

from ...report.suggestions import Suggestions
from ..overview import subject_text
from ..tables.suggestions import suggestion_details, suggestions
from .tables import code_lines, data, section, table_section


def print_suggestions(found: Suggestions, console: Console) -> None:
    """Print the rows, and the edits of the first one that has any."""
    console.print(data(subject_text(found.report), "bold"))
    console.print(table_section(suggestions(found)))
    written = next((row for row in found.rows if row.edits and row.is_best), None)
    for detail in () if written is None else suggestion_details(found, written):
        if detail.is_code and written is not None:
            console.print()
            console.print(section(", ".join(written.requests or ()), code_lines(detail.text)))
