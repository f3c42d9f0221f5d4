"""How bad a finding is."""

from __future__ import annotations

from typing import Literal

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first."""
