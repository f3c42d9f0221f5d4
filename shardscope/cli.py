"""The command line: which commands there are, and what becomes of errors."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from shardscope.commands import SUMMARIES, load
from shardscope.exit_code import ExitCode
from shardscope.signals import leave_interrupts, stopped_by, stopping
from shardscope.version import __version__


def command() -> int:
    """Run the command that the process was started for; returns its exit status."""
    status = main()
    leave_interrupts()
    gc.freeze()  # the collector would walk through all that was made once more before the process ends
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    try:
        _occupy_standard_descriptors()
        with stopping():
            return _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:  # where signals are not ours to handle
        return ExitCode.INTERRUPTED
    except BaseException as error:
        if (stopped := stopped_by(error)) is not None:
            return ExitCode(stopped.status)
        if not isinstance(error, (OSError, MemoryError)):
            raise
        # Of the system, and not of the request: no space, too many open files.
        where = f"{filename}: " if (filename := getattr(error, "filename", None)) else ""
        why = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
        return _complain(f"{where}{why}", ExitCode.SYSTEM_FAILED)


def _run(given: Sequence[str]) -> int:
    options = _options(given)
    from shardscope.inspector.capture.model import UnreadableFileError
    from shardscope.inspector.capture.output_file import OutputError
    from shardscope.output_places import check_places
    from shardscope.parsers.errors import ParseError, ShardscopeError

    try:
        check_places(options)
        if sys.stdout is None and getattr(options, "output", None) in (None, "-"):
            raise OutputError("cannot write to standard output: it is closed")
        return int(options.run(options))
    except (ParseError, UnreadableFileError) as error:
        return _complain(error, ExitCode.UNREADABLE_INPUT)
    except OutputError as error:
        return _complain(error, ExitCode.SYSTEM_FAILED)
    except ShardscopeError as error:
        return _complain(error, ExitCode.USAGE)


def _options(given: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; argparse takes a script's arguments for ours if options precede their `--`."""
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


def _occupy_standard_descriptors() -> None:
    """Open what the shell has closed (`>&-`): a file that is opened later must not be taken for standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _complain(error: object, code: ExitCode) -> ExitCode:
    from shardscope.terminal import say

    say(f"shardscope: {error}")
    return code
