"""Print the completions of a shell for commands, options and files.

  shardscope completion bash > ~/.local/share/bash-completion/completions/shardscope
  shardscope completion zsh > ~/.zfunc/_shardscope            (a folder of $fpath)
  shardscope completion fish > ~/.config/fish/completions/shardscope.fish

It needs `pip install 'shardscope[completion]'`.
"""

from __future__ import annotations

import argparse

from shardscope.exit_code import ExitCode
from shardscope.parsers.errors import ShardscopeError
from shardscope.terminal import show

FILES = ("function", "path", "before", "after", "command", "output", "save", "golden", "python")
"""Arguments and options that take a file."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def run(options: argparse.Namespace) -> ExitCode:
    """Print."""
    try:
        import shtab
    except ImportError:
        raise ShardscopeError("completions need shtab: pip install 'shardscope[completion]'") from None
    from shardscope.arguments import parser_of_all

    parser, commands = parser_of_all()
    for command in commands:
        for action in command._actions:
            if action.dest in FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    show(shtab.complete(parser, options.shell))
    return ExitCode.DONE
