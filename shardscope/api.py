"""The contents of `import shardscope`, behind a front that imports nothing until it is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from shardscope.inspector.capture.here import capture_here
from shardscope.inspector.load import load, load_bytes
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.html import report_fragment
from shardscope.inspector.render.why_lines import offences
from shardscope.inspector.report import REQUESTED, Collective, Report
from shardscope.inspector.units import plural

Report.as_html = staticmethod(report_fragment)

Subject = Callable[..., Any] | Report

Allowed = int | Mapping[str | tuple[str, ...], int]


def inspect_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, validate: bool = False
) -> Report:
    """The report of a call, captured in this process."""
    if not callable(function):
        raise TypeError(f"{function!r} is not a function: pass the function, then its arguments")
    if not validate:
        return inspect(capture_here(function, args, kwargs))
    from shardscope.inspector.capture.validation import validated_here

    return inspect(validated_here(function, args, kwargs))


def load_report(file: str | bytes | PathLike[str], module: str | None, python: str | None) -> Report:
    """The report of a file, or of what would be in one."""
    if isinstance(file, str) and "\n" in file:
        file = file.encode("utf-8", "replace")
    if isinstance(file, bytes):
        return inspect(load_bytes("text", file, module, python))
    return inspect(load(str(file), module, python))


def check_collectives(
    subject: Subject, args: Sequence[Any], kwargs: Mapping[str, Any], expected: Mapping[str, Allowed]
) -> Report:
    """Compare the collectives of some kinds with how many there are to be; AssertionError where they differ."""
    report = _report(subject, args, kwargs)
    problems = []
    for kind, wanted in expected.items():
        these = [each for each in _compiled(report) if each.kind == kind]
        if isinstance(wanted, int):
            wrong = these if len(these) != wanted else []
            if len(these) != wanted:
                problems.append(_problem(kind, wanted, "", wrong, report))
            continue
        known = Counter(_axes(each) for each in these)
        counts = Counter({tuple(sorted(_names(axes))): count for axes, count in wanted.items()})
        for axes in dict.fromkeys((*counts, *known)):
            if known[axes] != counts[axes]:
                wrong = [each for each in these if _axes(each) == axes]
                problems.append(_problem(kind, counts[axes], f" over {', '.join(axes)}", wrong, report))
    if problems:
        raise AssertionError("\n".join(problems))
    return report


def check_no_implicit(subject: Subject, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Report:
    """AssertionError where a collective is the partitioner's or the compiler's."""
    report = _report(subject, args, kwargs)
    these = [each for each in _compiled(report) if each.origin not in REQUESTED]
    if these:
        heading = f"{plural(len(these), 'collective')} that the source does not request:"
        raise AssertionError("\n".join((heading, *_listed(these, report))))
    return report


def _report(subject: Subject, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Report:
    return subject if isinstance(subject, Report) else inspect_call(subject, args, kwargs)


def _compiled(report: Report) -> Sequence[Collective]:
    return [each for each in report.collectives if each.stage == "hlo"]


def _problem(kind: str, wanted: int, over: str, these: Sequence[Collective], report: Report) -> str:
    there = f"{len(these) or 'none'}{':' if these else ''}"
    return "\n".join((f"expected {plural(wanted, kind)}{over}, found {there}", *_listed(these, report)))


def _listed(these: Iterable[Collective], report: Report) -> Iterable[str]:
    return (f"  {line}" for line in offences([(each, 1) for each in these], report))


def _axes(collective: Collective) -> tuple[str, ...]:
    return ("groups of no axes",) if collective.axes is None else tuple(sorted(map(str, collective.axes)))


def _names(axes: str | tuple[str, ...]) -> Sequence[str]:
    return [name.strip() for name in axes.split(",")] if isinstance(axes, str) else axes
