"""Links of compiled collectives, as one reads them in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ...report.links import LinkedPart
from ..tables.links import links_table
from .tables import table_section


def print_links(parts: Sequence[LinkedPart], console: Console) -> None:
    """Print a row for each part of each compiled collective."""
    console.print(table_section(links_table(parts), in_full=True))
