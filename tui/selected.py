"""What can be selected on the screen: a place, which all panes are linked to, or an entry of a table."""

from __future__ import annotations

from ..inspector.capture.model import Failure, OutputSummary, Value
from ..inspector.report import PlacedMessage
from ..inspector.selection.selection import Place
from ..parsers.errors import Problem

Entry = Value | OutputSummary | PlacedMessage | Failure | Problem

Selected = Place | Entry
