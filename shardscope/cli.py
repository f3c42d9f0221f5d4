"""The command line: which commands there are, and what becomes of errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from shardscope.commands import SUMMARIES, load
from shardscope.exit_code import ExitCode
from shardscope.version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    try:
        return int(_run(sys.argv[1:] if arguments is None else list(arguments)))
    except BrokenPipeError:
        # Whoever read the output has had enough; so that the interpreter's own flush does not fail too:
        sys.stdout = None
        return ExitCode.DONE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _run(given: Sequence[str]) -> ExitCode:
    options = _parser(given).parse_args(given)
    from shardscope.inspector.capture.model import UnreadableFileError
    from shardscope.parsers.errors import ParseError, ShardscopeError

    try:
        return ExitCode(options.run(options))
    except (ParseError, UnreadableFileError) as error:
        return _complain(error, ExitCode.UNREADABLE_INPUT)
    except ShardscopeError as error:
        return _complain(error, ExitCode.USAGE)


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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


def _complain(error: Exception, code: ExitCode) -> ExitCode:
    print(f"shardscope: {error}", file=sys.stderr)
    return code
