"""Explain a rule, or a collective of JAX: what it does, how it types, what it lowers to, how it transposes.

shardscope explain SS01
shardscope explain psum
shardscope explain                    (lists what can be explained)
"""

from __future__ import annotations

import argparse

from shardscope.exit_code import ExitCode
from shardscope.inspector.collectives.table import TABLE, names, rules_named
from shardscope.inspector.findings.rules import rule_named
from shardscope.inspector.render.explained import collective_text, table_text
from shardscope.inspector.render.rule_text import rule_text
from shardscope.parsers.errors import ShardscopeError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", nargs="?", help="a rule, a function of jax.lax, or a primitive of a jaxpr")


def run(options: argparse.Namespace) -> ExitCode:
    """Explain, or list."""
    if options.name is None:
        print(table_text(TABLE), end="")
        return ExitCode.DONE
    rule = rule_named(options.name)
    if rule is not None:
        print(rule_text(rule), end="")
        return ExitCode.DONE
    rules = rules_named(options.name)
    if not rules:
        raise ShardscopeError(f"nothing is known by the name {options.name!r}; there are: {', '.join(names())}")
    print("\n".join(map(collective_text, rules)), end="")
    return ExitCode.DONE
