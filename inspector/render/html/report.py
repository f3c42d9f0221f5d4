"""One report as a page: what matters, communication, the time line, then each table with what is known of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from ....parsers.source import Frame
from ...capture.model import PHASES
from ...report import Collective, Finding, Report
from ...report.edits import diff_of
from ..finding_facts import fixes_shown, notes_text, verdict, where
from ..overview import attention, in_order, nothing_sent, resources_text, subject_text
from ..table import Detail, Table
from ..tables import TABLES
from ..tables.captured import other_programs
from ..tables.collectives import collectives
from ..tables.findings import ROLES, findings
from .elements import cell, code, diff_lines, element, excerpt, facts, fragment, page, section, text
from .mesh import drawings, mesh_key
from .tables import cause_flows, flows, table_section
from .timeline import timeline_section

MAX_CAUSES = 3
"""Operations of a collective whose need for it is shown."""

OPEN = ("findings", "divergences", "axes", "communication", "collectives", "shardings", "problems")
"""The tables that are not folded at first."""


def report_page(report: Report) -> str:
    """One report."""
    parts = list(sections(report))
    links = [(anchor, name) for anchor, name, _ in parts if name]
    return page(subject_text(report), (part for *_, part in parts), links)


def report_fragment(report: Report) -> str:
    """The same for a notebook."""
    return fragment(part for *_, part in sections(report, "shardscope-"))


def sections(report: Report, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """The parts of a page, each with its anchor and what a link to it is called, if there is to be one."""
    yield "", "", element("h1", text(subject_text(report)), id=f"{prefix}top")
    yield "", "", element("p", text(resources_text(report)))
    yield "", "", "".join(_failure(report))
    state = [*map(cell, attention(report)), *map(text, filter(None, (nothing_sent(report), in_order(report))))]
    yield "", "", element("p", "<br>\n".join(state)) if state else ""
    links, drawn = _anchors(report, prefix), drawings(report, report.collectives)
    for make in TABLES:
        table = make(report)
        found = _section(table, report, prefix, links, drawn)
        yield (f"{prefix}{table.id}", table.title, found) if found else ("", "", "")
        if table.id == "collectives" and drawn:
            yield f"{prefix}meshes", "Mesh", _meshes(drawn, prefix)
    if report.capture.others:
        table = other_programs(report)
        yield f"{prefix}{table.id}", table.title, table_section(table, prefix)
    if notes := _findings(findings(report), report, prefix, notes=True):
        yield f"{prefix}notes", "Notes", notes


def _section(
    table: Table, report: Report, prefix: str, links: Mapping[Collective, str], drawn: Mapping[object, str]
) -> str:
    match table.id:
        case "findings":
            return _findings(table, report, prefix, notes=False)
        case "collectives":
            more = partial(_collective, report=report, drawn=drawn, prefix=prefix)
            return table_section(table, prefix, more)
        case "timeline":
            return timeline_section(report, prefix, links)
        case "shardings":
            return table_section(table, prefix, partial(flows, report=report))
    return table_section(table, prefix, is_open=table.id in OPEN)


def _anchors(report: Report, prefix: str) -> Mapping[Collective, str]:
    _, rows = collectives(report).for_document()
    return {
        each: f"{prefix}collectives-{number}"
        for number, row in enumerate(rows, 1)
        if isinstance(row.value, tuple)
        for each in row.value
    }


def _failure(report: Report) -> Iterator[str]:
    failure, found = report.capture.failure, report.explanation
    if failure is not None:
        yield element("h2", text(f"Stopped while {PHASES[failure.phase]}"))
        yield element("p", text(failure.message), "error")
        yield facts([("hint", failure.hint or "")])
        yield code((line, "") for line in failure.details.splitlines()) if failure.details else ""
    if found is not None:
        yield element("h2", text(f"Why it fails: {found.title}"))
        steps = (f"{step.what}   {step.source.text()}".rstrip() for step in found.steps)
        yield element("ol", "".join(element("li", text(step)) for step in steps))
        for each in fixes_shown(found):
            yield facts([(verdict(each), each.title)])
            yield diff_lines(diff) if (diff := diff_of(report.program, each)) else ""


def _findings(table: Table, report: Report, prefix: str, *, notes: bool) -> str:
    """The notes, or all other findings, each in full; empty where there are none."""
    parts = []
    for number, row in enumerate(table.rows, 1):
        selected = table.selection(row.value)
        is_note = isinstance(selected, Finding) and (selected.severity == "info" or selected is not row.value)
        if isinstance(selected, Finding) and is_note is notes:
            inside = _finding(selected, [each for each in table.details(row.value) if each.text], report)
            parts.append(element("article", inside, id=f"{prefix}finding-{number}"))
    anchor, heading = ("notes", f"For information: {notes_text(report)}") if notes else ("findings", table.heading)
    return section(f"{prefix}{anchor}", heading, "\n".join(parts), is_open=not notes) if parts else ""


def _finding(found: Finding, details: list[Detail], report: Report) -> str:
    severity = element("span", text(f"{found.severity} {found.rule} {found.slug}"), ROLES[found.severity])
    head = f"{severity} {text(where(found))} {element('span', text(found.confidence), 'aside')}"
    labelled = [(detail.label, detail.text) for detail in details if not detail.is_code]
    changes = [diff_lines(detail.text.splitlines()) for detail in details if detail.is_code]
    parts = [element("p", head), element("p", text(found.message)), _excerpt(report, found.place.source.frame)]
    return "\n".join(filter(None, [*parts, facts(labelled), *changes]))


def _collective(value: object, report: Report, drawn: Mapping[object, str], prefix: str) -> str:
    """The cause of a collective, the line that it comes from, and the drawing of its groups."""
    one = value[0] if isinstance(value, tuple) and value else None
    if not isinstance(one, Collective):
        return ""
    parts = list(cause_flows(report.on_demand.causes(one)[:MAX_CAUSES], report))
    parts.append(_excerpt(report, one.source.frame))
    parts.append(facts([("instruction", one.name), ("in", one.computation), ("op_name", one.op_name or "")]))
    if mesh_key(one) in drawn:
        number = list(drawn).index(mesh_key(one)) + 1
        parts.append(element("p", element("a", "its groups on the mesh", "axis", href=f"#{prefix}mesh-{number}")))
    return "".join(parts)


def _meshes(drawn: Mapping[object, str], prefix: str) -> str:
    figures = [element("figure", picture, id=f"{prefix}mesh-{n}") for n, picture in enumerate(drawn.values(), 1)]
    return section(f"{prefix}meshes", "Who communicates with whom", element("div", "".join(figures), "meshes"))


def _excerpt(report: Report, frame: Frame | None) -> str:
    """The line of a frame with those around it; empty where the file is not there."""
    return "" if frame is None else excerpt(report.program.file(frame.file), frame.line)
