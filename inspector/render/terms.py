"""The symbols of a formula with their values."""

from __future__ import annotations

from ..report.cost import Term
from ..units import format_bytes, format_count, format_seconds


def term_text(term: Term) -> str:
    """`V = 512 B`, `t = 1 µs`."""
    match term.unit:
        case "s":
            value = format_seconds(term.value)
        case "B":
            value = format_bytes(round(term.value))
        case "B/s":
            value = f"{format_count(term.value)}B/s"
        case _:
            value = f"{term.value:.4g}"
    return f"{term.symbol} = {value}"
