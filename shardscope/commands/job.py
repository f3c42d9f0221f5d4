"""The job of a command that reports: the options of the command line, merged with the settings, in one value.

The reported findings are those of the command line, else of the settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from shardscope.commands.output import (
    MAX_TRIAL_S,
    SEVERITIES,
    Output,
    after_screen,
    output_of,
    write_extract,
    write_report,
)
from shardscope.configuration import TABLE, Configuration, Found, Severity
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.findings.rule import Rule
from shardscope.inspector.findings.rules import rule_named, similar_rules
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report import Report
from shardscope.inspector.report.policy import Policy
from shardscope.parsers.errors import ShardscopeError
from shardscope.parsers.record import Record
from shardscope.terminal import progress


class Job(Record, frozen=True):
    """The findings that are reported, and which of them fail the command; where the result goes.

    Changes are tried for so many `seconds`, None for as many as the compilation took. Captures are saved as the file
    `save`, and made again with `watch` whenever a file of the program is saved.
    """

    output: Output
    policy: Policy
    fail_on: Severity | None = None
    seconds: float | None = 0.0
    save: str | None = None
    watch: bool = False

    def status(self, code: ExitCode, report: Report) -> ExitCode:
        """Return the exit code with findings; earlier problems take precedence."""
        if code is not ExitCode.DONE or self.fail_on is None:
            return code
        if not all(report.could_be_read(stage.name) for stage in report.program.stages):
            return ExitCode.UNREADABLE_INPUT
        bad = SEVERITIES[: SEVERITIES.index(self.fail_on) + 1]
        return ExitCode.FINDINGS if any(each.severity in bad for each in report.findings) else code


def present(capture: Capture, job: Job, improve: Callable[[Report], Report] = lambda report: report) -> ExitCode:
    """Show a capture that has ended: an extract, the screen, or its report, and return how it went."""
    if job.output.is_extract:
        return write_extract(capture, job.output)
    if job.output.format == "tui":
        from shardscope.inspector.on_screen import analyses
        from shardscope.tui.app import show

        show(capture, analyses(job.policy))
        return after_screen(capture)
    with progress("analyzing", quiet=job.output.quiet):
        report = inspect(capture, job.policy)
    report = improve(report)
    return job.status(write_report(report, job.output), report)


def job_of(options: argparse.Namespace, settings: Found) -> Job:
    """The job that options and settings ask for; options that the command lacks are as if they were not given.

    Raises:
        ShardscopeError: a rule is not known, or has no threshold.
    """
    said, given = settings.configuration, vars(options)
    strict = options.strict or said.strict
    wants_all = given.get("verify") or said.verify
    seconds = float(given["try_for"]) if given.get("try_for") is not None else float(MAX_TRIAL_S) if wants_all else None
    return Job(
        output=output_of(options),
        policy=policy_of(settings, options.select, options.ignore, options.strict),
        fail_on=options.fail_on or said.fail_on or ("error" if strict else None),
        seconds=seconds,
        save=given.get("save"),
        watch=given.get("watch", False),
    )


def policy_of(found: Found, select: str | None = None, ignore: str | None = None, strict: bool = False) -> Policy:
    """Return the requested policy; `select` and `ignore` are lists of rules, separated by commas.

    Raises:
        ShardscopeError: there is no such rule, or it has no threshold; of the settings, the text names file and key.
    """
    said = found.configuration
    if found.file is not None:
        _check(found.file, said)
    chosen = said.select if select is None else _listed(select)
    return Policy(
        rules=None if chosen is None else _ids(chosen),
        without=_ids(said.ignore if ignore is None else _listed(ignore)),
        elsewhere=tuple((path, _ids(rules)) for path, rules in said.per_path_ignores.items()),
        root="" if found.file is None else str(found.file.parent),
        settings="" if found.file is None else str(found.file),
        thresholds={_rule(name).id: value for name, value in said.thresholds.items()},
        strict=strict or said.strict,
    )


def _check(file: Path, said: Configuration) -> None:
    lists: Iterable[tuple[str, Iterable[str]]] = (
        ("select", said.select or ()),
        ("ignore", said.ignore),
        *((f"per-path-ignores.{path!r}", rules) for path, rules in said.per_path_ignores.items()),
        ("thresholds", said.thresholds),
    )
    for key, names in lists:
        for name in names:
            try:
                rule = _rule(name)
            except ShardscopeError as error:
                raise ShardscopeError(f"{file}: [{TABLE}] {key}: {error}") from None
            if key == "thresholds" and rule.threshold is None:
                raise ShardscopeError(f"{file}: [{TABLE}] {key}: {rule.id} {rule.slug} has no threshold")


def _rule(name: str) -> Rule:
    rule = rule_named(name)
    if rule is None:
        near = similar_rules(name)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ShardscopeError(f"unknown rule {name!r}; {meant}`shardscope rules` lists them")
    return rule


def _ids(names: Iterable[str]) -> frozenset[str]:
    return frozenset(_rule(name).id for name in names)


def _listed(names: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in names.split(","))))
