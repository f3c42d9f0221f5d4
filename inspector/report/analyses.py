"""The analyses that a screen asks for while it is shown: of captures that grow, of several of them, and of edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...parsers.record import Record
from ..capture.model import Capture
from ..capture.protocol.request import Request
from ..ir.program import Program
from .changes import Diff
from .comparison import Comparison
from .findings import Finding
from .report import Report
from .suggestions import Suggestions


class Suggest(Protocol):
    """Other shardings of a captured program."""

    def __call__(
        self, capture: Capture, request: Request, seconds: float, *, tell: Callable[[str], None]
    ) -> Suggestions:
        """Search for so many seconds; `tell` hears what is being done, and what it raises ends the search."""


class Analyses(Record, frozen=True):
    """Functions with the findings that one reader selects.

    `inspect` reports all that is known of a program so far, and `first_look` what is known at once of a large one.
    `compare` puts reports for targets side by side. `changes_by` captures with the fix of a finding, for a request that
    made the report; it raises CaptureError where that cannot be. `suggest` searches for other shardings.
    """

    inspect: Callable[[Program], Report]
    first_look: Callable[[Program], Report]
    compare: Callable[[Sequence[str], Sequence[Report]], Comparison]
    changes_by: Callable[[Finding, Report, Request], Diff]
    suggest: Suggest
