"""Explain a rule, or a collective of JAX: what it does, how it types, what it lowers to, how it transposes.

shardscope explain SS01
shardscope explain psum
shardscope explain                    (lists what can be explained)
"""

from __future__ import annotations

import argparse

from shardscope.exit_code import ExitCode
from shardscope.inspector.catalog.spellings import TABLE, entries_named, similar_names
from shardscope.inspector.findings.rules import rule_named, similar_rules
from shardscope.inspector.render.explained import entry_text, rule_text, table_text
from shardscope.parsers.errors import ShardscopeError
from shardscope.terminal import show


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", nargs="?", help="a rule, or a collective as JAX, a jaxpr, StableHLO or HLO spells it")


def run(options: argparse.Namespace) -> ExitCode:
    """Explain, or list."""
    if options.name is None:
        show(table_text(TABLE))
        return ExitCode.DONE
    rule = rule_named(options.name)
    if rule is not None:
        show(rule_text(rule))
        return ExitCode.DONE
    entries = entries_named(options.name)
    if not entries:
        similar = [*similar_rules(options.name), *similar_names(options.name)][:3]
        lists = "`shardscope explain` and `shardscope rules` list all names"
        hint = f"did you mean {' or '.join(similar)}?" if similar else lists
        raise ShardscopeError(f"unknown name {options.name!r}; {hint}")
    show("\n".join(map(entry_text, entries)))
    return ExitCode.DONE
