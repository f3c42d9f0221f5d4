"""What can be selected on the screen: a place, which all panes are linked to, or an entry of a table."""

from __future__ import annotations

from ..inspector.capture.model import Failure, Message, OutputSummary, Value
from ..inspector.linked import Place
from ..parsers.errors import Problem

Entry = Value | OutputSummary | Message | Failure | Problem

Selected = Place | Entry
