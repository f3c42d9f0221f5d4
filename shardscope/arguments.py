"""The arguments of the command line: which commands there are, and what each of them takes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from shardscope.commands import SUMMARIES, load
from shardscope.exit_code import ExitCode
from shardscope.version import __version__


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line, its command first; argparse ends the process where it is wrong.

    argparse takes a script's arguments for ours if options precede their `--`.
    """
    own = list(given[: given.index("--")]) if given[:1] == ["run"] and "--" in given else list(given)
    options = _parser(own).parse_args(own)
    if len(own) < len(given):
        options.argv = [*options.argv, *given[len(own) + 1 :]]
    return options


class _Parser(argparse.ArgumentParser):
    """A parser whose errors pass the door to the terminal, as they quote what was given."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        from shardscope.terminal import say

        say(f"{self.prog}: {message}; see {self.prog} --help")
        raise SystemExit(ExitCode.USAGE)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="shardscope",
        description="See how JAX shards a function, what it communicates, and from which line.",
        epilog="Try it: shardscope run fsdp_tp:grad",
    )
    parser.add_argument("--version", action="version", version=f"shardscope {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    chosen = next((argument for argument in given if not argument.startswith("-")), None)
    for name, summary in SUMMARIES.items():
        subparser = subparsers.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name == chosen:
            command = load(name)
            subparser.description = command.description
            command.configure(subparser)
            subparser.set_defaults(run=command.run)
    return parser
