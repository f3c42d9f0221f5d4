"""Links of compiled collectives, as one reads them in a terminal."""

from __future__ import annotations

from rich.console import Console

from ...ir.program import Program
from ...pipeline import links
from ..tables.links import links_table
from .tables import table_section


def print_links(program: Program, console: Console) -> None:
    """Print a row for each part of each compiled collective."""
    console.print(table_section(links_table(links(program)), in_full=True))
