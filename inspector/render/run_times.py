"""How long a live run took, in words."""

from __future__ import annotations

from statistics import median

from ..capture.model import Execution
from ..units import format_seconds, plural


def run_times(execution: Execution) -> str:
    """`5 runs, median 1.8 ms`; empty where none was measured."""
    seconds = execution.seconds
    return f"{plural(len(seconds), 'run')}, median {format_seconds(median(seconds))}" if seconds else ""
