"""Which findings the commands that show a report tell, and which of them are a failure."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from shardscope.configuration import Found
from shardscope.exit_code import ExitCode
from shardscope.inspector.report import SEVERITIES

if TYPE_CHECKING:
    from shardscope.inspector.report import Report


def add_finding_options(parser: argparse.ArgumentParser) -> None:
    """`--select`, `--ignore`, `--strict` and `--fail-on`."""
    parser.add_argument("--select", metavar="RULES", help="tell only these findings, as in SS01,SS04")
    parser.add_argument("--ignore", metavar="RULES", help="do not tell these findings; see `shardscope rules`")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="communication that nobody asked for is an error, and suppressions of nothing are told; exit with status 1"
        " for errors",
    )
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        metavar="SEVERITY",
        help="exit with status 1 when there are findings that are so bad: error, warning or info",
    )


def verifies(options: argparse.Namespace, found: Found) -> bool:
    """Whether the fixes of findings are to be tried."""
    return options.verify or found.configuration.verify


def failed(code: ExitCode, report: Report, options: argparse.Namespace, found: Found) -> ExitCode:
    """How it went, findings included; what went wrong before them counts more."""
    strict = options.strict or found.configuration.strict
    least = options.fail_on or found.configuration.fail_on or ("error" if strict else None)
    if code is not ExitCode.DONE or least is None:
        return code
    bad = SEVERITIES[: SEVERITIES.index(least) + 1]
    return ExitCode.FINDINGS if any(each.severity in bad for each in report.findings) else code
