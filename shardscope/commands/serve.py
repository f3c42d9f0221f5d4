"""Show the screen of another command in a browser on this machine.

    shardscope serve open step.shardscope
    shardscope serve run train.py:step --target tpu:v5p:2x2x2

It listens on 127.0.0.1 alone, at an address with a random part, which it prints. The package textual-serve is needed:
pip install 'shardscope[serve]'.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys

from shardscope.commands.numbers import whole
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
    from shardscope.web_server import LoopbackServer

    own = [options.shown, *options.arguments]
    command = [sys.executable, "-m", "shardscope", own[0], "--format", "tui", *own[1:]]
    return LoopbackServer(command, f"shardscope {' '.join(own)}", options.port).until_stopped()
