"""Which findings the commands that show a report tell, and which of them are a failure."""

from __future__ import annotations

import argparse
from dataclasses import replace

from shardscope.exit_code import ExitCode
from shardscope.inspector.findings.table import RULES, SEVERITIES, rule_named
from shardscope.inspector.report import Report
from shardscope.parsers.errors import ShardscopeError


def add_finding_options(parser: argparse.ArgumentParser) -> None:
    """`--select`, `--ignore` and `--fail-on`."""
    parser.add_argument("--select", metavar="RULES", help="tell only these findings, as in SS01,SS04")
    parser.add_argument("--ignore", metavar="RULES", help="do not tell these findings; see `shardscope rules`")
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        metavar="SEVERITY",
        help="exit with status 1 when there are findings that are so bad: error, warning or info",
    )


def chosen(report: Report, options: argparse.Namespace) -> Report:
    """The report with the findings that are asked for; ShardscopeError for a rule that there is not."""
    selected = {rule.id for rule in RULES} if options.select is None else _rules(options.select)
    ignored = set() if options.ignore is None else _rules(options.ignore)
    wanted = selected - ignored
    return replace(report, findings=tuple(found for found in report.findings if found.rule in wanted))


def failed(code: ExitCode, report: Report, options: argparse.Namespace) -> ExitCode:
    """How it went, findings included; what went wrong before them counts more."""
    if code is not ExitCode.DONE or options.fail_on is None:
        return code
    bad = SEVERITIES[: SEVERITIES.index(options.fail_on) + 1]
    return ExitCode.FINDINGS if any(found.severity in bad for found in report.findings) else code


def _rules(names: str) -> set[str]:
    rules = set()
    for name in filter(None, (part.strip() for part in names.split(","))):
        rule = rule_named(name)
        if rule is None:
            raise ShardscopeError(f"there is no rule {name!r}; `shardscope rules` lists them")
        rules.add(rule.id)
    return rules
