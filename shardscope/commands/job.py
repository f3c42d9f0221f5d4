"""The job of a command that reports: the options of the command line, merged with the settings, in one value."""

from __future__ import annotations

import argparse

from shardscope.commands.output import MAX_TRIAL_S, SEVERITIES, Output, output_of
from shardscope.configuration import Found, Severity
from shardscope.exit_code import ExitCode
from shardscope.inspector.findings.policy import Policy
from shardscope.inspector.report import Report
from shardscope.parsers.record import Record
from shardscope.policies import policy_of


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
