"""The rows of the tables beside the collectives: values, variance, live results, and what was said and went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content

from ..inspector.capture.model import PHASES, Capture, Failure, Message, OutputSummary
from ..inspector.report import PlacedMessage, Report, VariableVariance
from ..parsers.errors import Problem
from .columns import Column
from .pieces import axes_content, data
from .row_table import Row

VALUES = (Column("", 3, 1), Column("value", 10, 5), Column("type", 10, 4), Column("sharding", 12, 3), Column("", 7, 2))

VARIANCE = (
    Column("varying", 7, 8),
    Column("left", 4, 4),
    Column("unreduced", 4, 3),
    Column("reduced", 4, 2),
    Column("value", 3, 4),
    Column("type", 12, 6),
    Column("primitive", 8, 7),
    Column("entered", 8, 1),
    Column("from", 8, 2),
)

LIVE = (
    Column("output", 8, 8),
    Column("type", 8, 7),
    Column("sharding", 8, 3),
    Column("min", 8, 5, "right"),
    Column("mean", 8, 6, "right"),
    Column("max", 8, 4, "right"),
    Column("not finite", 4, 9, "right"),
)

LEVELS = ("error", "warning", "info")

PROBLEMS = (Column("", 7, 3), Column("what", 20, 4), Column("where", 8, 2), Column("while", 6, 1))


def value_rows(capture: Capture) -> list[Row]:
    """Arguments and outputs, with the shardings that were asked for."""
    rows = []
    for kind, values in (("in", capture.arguments), ("out", capture.outputs)):
        for number, value in enumerate(values):
            sharding = data(value.spec) if value.spec else Content.styled("not asked for", "$aside")
            donated = Content.styled("donated" if value.donated else "", "$warning")
            cells = (Content.styled(kind, "$aside"), data(value.path), data(value.type), sharding, donated)
            rows.append(Row((kind, number), cells))
    return rows


def variance_rows(report: Report, hues: Mapping[str, str]) -> list[Row]:
    """What each equation inside a shard_map gives, with the axes along which it varies."""
    return [Row(number, _variance(variable, hues, report.script)) for number, variable in enumerate(report.variance)]


def _variance(variable: VariableVariance, hues: Mapping[str, str], script: str | None) -> tuple[Content, ...]:
    varying = axes_content(variable.varying, hues) if variable.varying else Content.styled("–", "$aside")
    hidden = (" hides ", "bold $error") if variable.hidden else ""
    entered = dict.fromkeys(f"{entry.axis} {entry.by}" for entry in variable.entered)
    return (
        Content.assemble(
            varying, hidden, axes_content(variable.hidden, hues), ("?" if variable.inferred else "", "$aside")
        ),
        axes_content(variable.left, hues),
        axes_content(variable.unreduced, hues),
        axes_content(variable.reduced, hues),
        data(variable.value),
        data(variable.type),
        data(variable.primitive),
        data(", ".join(entered)),
        data(variable.source.function_text(script)),
    )


def live_rows(outputs: Sequence[OutputSummary]) -> list[Row]:
    """The outputs of the run, in numbers."""
    rows = []
    for number, output in enumerate(outputs):
        bad = Content.styled(str(output.non_finite), "bold $error") if output.non_finite else Content("")
        numbers = (_number(output.minimum), _number(output.mean), _number(output.maximum))
        rows.append(Row(number, (data(output.path), data(output.type), data(output.spec or ""), *numbers, bad)))
    return rows


def _number(value: float | None) -> Content:
    return Content("" if value is None else f"{value:.4g}")


def problems_of(capture: Capture, report: Report | None) -> list[Failure | PlacedMessage | Problem]:
    """What went wrong, what the compiler said, and what could not be read."""
    found: list[Failure | PlacedMessage | Problem] = [] if capture.failure is None else [capture.failure]
    if capture.damage is not None:
        text = f"the file is damaged, what follows is missing: {capture.damage}"
        found.append(PlacedMessage(Message("error", text, "start")))
    messages = report.messages if report and report.capture is capture else map(PlacedMessage, capture.messages)
    found += sorted(messages, key=lambda placed: LEVELS.index(placed.message.level))
    return found + [problem for stage in report.stages for problem in stage.problems] if report else found


def problem_rows(problems: Sequence[Failure | PlacedMessage | Problem]) -> list[Row]:
    """The first line of each."""
    return [Row(number, _problem(problem)) for number, problem in enumerate(problems)]


def _problem(problem: Failure | PlacedMessage | Problem) -> tuple[Content, ...]:
    level, where, phase = "error", "", "reading"
    match problem:
        case Failure():
            text, phase = problem.message, PHASES[problem.phase]
        case PlacedMessage(message=Message() as said):
            level, text, phase = said.level, said.text, PHASES[said.phase]
            where = problem.source.text() or said.location or ""
        case Problem():
            line, column = problem.source.position(problem.span.start)
            text, where = problem.message, f"{problem.source.name}:{line}:{column}"
    colour = {"error": "bold $error", "warning": "$warning"}.get(level, "$aside")
    first = next(iter(text.strip().splitlines()), "")[:300]
    return Content.styled(level, colour), data(first), data(where), data(phase)
