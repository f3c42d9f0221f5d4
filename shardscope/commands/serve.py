"""Show the screen of another command in a browser on this machine.

    shardscope serve open step.shardscope
    shardscope serve run train.py:step --target tpu:v5p:2x2x2

It listens on 127.0.0.1 alone, at an address with a random part, which it prints. The package textual-serve is needed:
pip install 'shardscope[serve]'.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from shardscope.configuration import whole
from shardscope.exit_code import ExitCode
from shardscope.parsers.errors import ShardscopeError

SHOWN = ("run", "open", "diff", "trace", "ranks")
"""The commands that have a screen."""

MAX_PORT = (1 << 16) - 1


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "--port", type=whole(0, MAX_PORT, "a port"), default=0, help="the port to listen on (default: any that is free)"
    )
    parser.add_argument("shown", choices=SHOWN, metavar="COMMAND", help=f"one of {', '.join(SHOWN)}")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")


def run(options: argparse.Namespace) -> ExitCode:
    """Serve until it is stopped."""
    if importlib.util.find_spec("textual_serve") is None:
        raise ShardscopeError("`shardscope serve` needs textual-serve: pip install 'shardscope[serve]'")
    from shardscope.arguments import parsed
    from shardscope.web_server import LoopbackServer

    own = [options.shown, *options.arguments]
    _check(options.shown, parsed(own))
    command = [sys.executable, "-m", "shardscope", own[0], "--format", "tui", *own[1:]]
    return LoopbackServer(command, f"shardscope {' '.join(own)}", options.port).until_stopped()


def _check(shown: str, options: argparse.Namespace) -> None:
    """Refuse what a browser would only show the end of; raises ShardscopeError."""
    if shown != "open":
        return
    if options.path == "-":
        raise ShardscopeError("`shardscope serve open` needs a file: a browser has no standard input")
    try:
        os.stat(options.path)
    except (OSError, ValueError) as error:
        raise ShardscopeError(f"cannot read {options.path}: {getattr(error, 'strerror', error)}") from None
