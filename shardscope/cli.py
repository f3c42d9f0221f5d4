"""The command line: one command is run, and each error becomes a line and an exit status."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence


def command() -> int:
    """Run the command that the process was started for; returns its exit status.

    Before it handles signals, and after, there is nothing to clean up: Ctrl-C ends the process as the system does it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(20_000)  # imports make many objects, which all stay
    status = main()
    gc.freeze()  # the collector would walk through all that was made once more before the process ends
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    from shardscope.exit_code import ExitCode
    from shardscope.signals import stopped_by, stopping

    try:
        _occupy_standard_descriptors()
        with stopping():
            return _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:  # where signals are not ours to handle
        return ExitCode.INTERRUPTED
    except BaseException as error:
        if (stopped := stopped_by(error)) is not None:
            return stopped.status
        if not isinstance(error, (OSError, MemoryError)):
            raise
        # Of the system, and not of the request: no space, too many open files.
        where = f"{filename}: " if (filename := getattr(error, "filename", None)) else ""
        why = getattr(error, "strerror", None) or str(error) or "there is not enough memory"
        return _complain(f"{where}{why}", ExitCode.SYSTEM_FAILED)


def _run(given: Sequence[str]) -> int:
    from shardscope.arguments import parsed

    options = parsed(given)
    from shardscope.exit_code import ExitCode
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


def _occupy_standard_descriptors() -> None:
    """Open what the shell has closed (`>&-`): a file that is opened later must not be taken for standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _complain(error: object, code: int) -> int:
    from shardscope.terminal import say

    say(f"shardscope: {error}")
    return code
