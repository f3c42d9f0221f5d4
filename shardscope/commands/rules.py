"""List the rules.

`shardscope explain SS01` describes one in full.
"""

from __future__ import annotations

import argparse

from shardscope.exit_code import ExitCode
from shardscope.inspector.findings.rules import RULES
from shardscope.inspector.render.explained import rules_page, rules_text
from shardscope.terminal import show


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--markdown", action="store_true", help="print all rules in full, as Markdown")


def run(options: argparse.Namespace) -> ExitCode:
    """List."""
    show(rules_page(RULES) if options.markdown else rules_text(RULES))
    return ExitCode.DONE
