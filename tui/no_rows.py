"""What a table without rows says in their place."""

from __future__ import annotations

from ..inspector.capture.model import Capture
from ..inspector.report import Report


def no_rows(table: str | None, capture: Capture, report: Report | None) -> str:
    """Why a table, by its id, has none; empty while some may still come, or where the line above the rows says it."""
    if report is None or capture.progress is not None:
        return ""
    is_dump, ran = capture.subject is None, capture.execution is not None
    match table:
        case "findings" if all(report.could_be_read(stage.name) for stage in capture.stages):
            return "No findings."
        case "findings":
            return "No findings in what could be read."
        case "values":
            return "A dump does not tell them." if is_dump else "The function has none."
        case "variance" if capture.stage("jaxpr") is None:
            return "There is no jaxpr, which tells it."
        case "variance":
            return "No shard_map, in which values vary over axes."
        case "devices" if ran:
            return "No value was looked at on each device: --probe all looks at all of them."
        case "devices" | "live-table":
            return "A dump is not run." if is_dump else "The program was not run."
        case "problems":
            return "No problems."
    return ""
