"""Findings as SARIF 2.1.0, the format that code scanning services take (OASIS, docs.oasis-open.org/sarif)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...parsers.source import Frame
from ..ir.program import Program
from ..report import Edit, Finding, FindingPlace, Fix, Report, Rule, Severity, Suppression
from ..report.edits import edited
from ..report.position import place_of
from .finding_facts import facts, failure_text
from .github import working_folder
from .printable import printable

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
ROOT = "%SRCROOT%"
"""The base of relative paths, by the name that services know."""

Json = dict[str, Any]


def to_sarif(reports: Sequence[Report], version: str) -> bytes:
    """One run for each report, by this version of shardscope; UTF-8, with a newline at the end."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report, version) for report in reports]}
    return json.dumps(log, indent=2).encode() + b"\n"


def _run(report: Report, version: str) -> Json:
    results = [_result(found, report) for found in report.findings]
    for known in report.suppressed:
        results.append({**_result(known.finding, report), "suppressions": [_suppression(known.by)]})
    failure, subject = report.capture.failure, report.capture.subject
    invocation: Json = {"executionSuccessful": failure is None}
    if failure is not None:
        notification: Json = {"level": "error", "message": _message(failure_text(report))}
        if failure.stack:
            notification["locations"] = [_physical(place_of(failure).stack[0], report.program)]
        invocation["toolExecutionNotifications"] = [notification]
    run = {
        "tool": {"driver": {"name": "shardscope", "version": version, "rules": [_rule(rule) for rule in report.rules]}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": _uri(f"{working_folder().as_posix()}/")}},
        "invocations": [invocation],
        "results": results,
    }
    if subject is not None:
        # Runs of one function on several targets are results of different analyses: none replaces another.
        run["automationDetails"] = {"id": printable(f"shardscope/{subject.function}/{subject.target}/")}
    return run


def _rule(rule: Rule) -> Json:
    code = f"Faulty:\n\n```python\n{rule.faulty}\n```\n\nRepaired:\n\n```python\n{rule.repaired}\n```"
    return {
        "id": rule.id,
        "name": "".join(map(str.capitalize, rule.slug.split("-"))),
        "shortDescription": {"text": rule.finds},
        "fullDescription": {"text": f"{rule.finds} {rule.why}"},
        "help": {
            "text": f"{rule.why}\n\n{rule.proof}\n\nFaulty:\n{rule.faulty}\n\nRepaired:\n{rule.repaired}",
            "markdown": f"{rule.why}\n\n**Evidence.** {rule.proof}\n\n{code}",
        },
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(found: Finding, report: Report) -> Json:
    program, ids = report.program, [rule.id for rule in report.rules]
    lines = "\n".join([found.message, *(f"{name}: {text}" for name, text in facts(found))])
    result = {
        "ruleId": found.rule,
        "ruleIndex": ids.index(found.rule) if found.rule in ids else -1,
        "level": LEVELS[found.severity],
        "message": _message(lines),
        "locations": [_location(found.place, program)],
        "properties": {
            "confidence": found.confidence,
            "axes": [printable(str(axis)) for axis in found.axes],
            "savedBytes": found.saved_bytes,
            "savedSeconds": found.saved_seconds,
            "verified": None if found.experiment is None else found.experiment.helps,
        },
    }
    if found.related:
        related = (_location(place, program) for place in found.related)
        result["relatedLocations"] = [{**location, "id": number} for number, location in enumerate(related)]
    if len(found.place.source.stack) > 1:
        frames = [{"location": _physical(frame, program)} for frame in found.place.source.stack]
        result["stacks"] = [{"message": _message("where it comes from"), "frames": frames}]
    fixes = [fix for fix in found.fixes if fix.helps and edited(program, fix.edits) is not None]
    if fixes:
        result["fixes"] = [_fix(fix, program) for fix in fixes]
    return result


def _location(place: FindingPlace, program: Program) -> Json:
    """The line, or that of the script where none is known, which services insist on; what stands there has a name."""
    frame = place.source.frame
    script = None if program.capture.subject is None else program.capture.subject.script
    location = {} if frame is None and script is None else _physical(frame or Frame(script or "", "", 1), program)
    return {**location, "logicalLocations": [{"name": printable(place.what)}], "message": _message(place.what)}


def _physical(frame: Frame, program: Program) -> Json:
    region = {"startLine": max(frame.line, 1)}
    if frame.end_line >= frame.line > 0:
        region |= _region(program, Edit(frame.file, frame.line, frame.column, frame.end_line, frame.end_column, ""))
    physical = {"physicalLocation": {"artifactLocation": _artifact(frame.file), "region": region}}
    if not frame.function:
        return physical
    return {**physical, "logicalLocations": [{"fullyQualifiedName": printable(frame.function), "kind": "function"}]}


def _region(program: Program, place: Edit) -> Json:
    """A region in lines and characters, both from 1; without characters where the text is not there to count in."""
    region = {"startLine": place.line, "endLine": place.end_line}
    source = program.file(place.file)
    lines = [] if source is None else source.data.splitlines()
    if place.end_line > len(lines):
        return {"startLine": place.line}
    start, end = (
        len(lines[line - 1][: max(column, 0)].decode("utf-8", "replace")) + 1
        for line, column in ((place.line, place.column), (place.end_line, place.end_column))
    )
    inside = (place.line, start) <= (place.end_line, end)
    return {**region, "startColumn": start, "endColumn": end} if inside else {"startLine": place.line}


def _fix(fix: Fix, program: Program) -> Json:
    return {
        "description": _message(fix.title),
        "artifactChanges": [
            {"artifactLocation": _artifact(file), "replacements": list(_replacements(fix.edits, file, program))}
            for file in dict.fromkeys(edit.file for edit in fix.edits)
        ],
    }


def _replacements(edits: Iterable[Edit], file: str, program: Program) -> Iterable[Json]:
    for edit in edits:
        if edit.file == file:
            yield {"deletedRegion": _region(program, edit), "insertedContent": {"text": printable(edit.text)}}


def _suppression(by: Suppression) -> Json:
    said = {"kind": "inSource" if by.line else "external"}
    return {**said, "justification": printable(by.reason)} if by.reason else said


def _artifact(file: str) -> Json:
    path = Path(os.path.normpath(file))
    if path.is_relative_to(working_folder()):
        return {"uri": _quoted(path.relative_to(working_folder()).as_posix()), "uriBaseId": ROOT}
    return {"uri": _uri(path.as_posix()) if path.is_absolute() else _quoted(path.as_posix())}


def _uri(path: str) -> str:
    return f"file://{quote(path, errors='replace')}"


def _quoted(path: str) -> str:
    return quote(path, errors="replace")


def _message(text: str) -> Json:
    """SARIF's messages take `{0}` for arguments and `[text](link)` for links, and no empty ones."""
    shown = printable(text) or "-"
    for sign in "\\[]":
        shown = shown.replace(sign, f"\\{sign}")
    return {"text": shown.replace("{", "{{").replace("}", "}}")}
