"""The commands, in the order in which `--help` lists them; a command's module is imported when it is used."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from shardscope.exit_code import ExitCode


@dataclass(frozen=True, slots=True)
class Command:
    """What a command's module offers.

    `configure` adds the command's arguments to its parser; `run` does it and tells how it went. The module's docstring
    is shown by `--help`.
    """

    description: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], ExitCode]


SUMMARIES = {
    "run": "capture a function, and show what is in it",
    "trace": "run a script as it is, and list every program that JAX compiles",
    "open": "show a saved capture, or a compiler's dumps",
    "diff": "what changed between two lowerings: commits, JAX versions, targets, files",
    "check": "compare with what was kept, and with budgets, for continuous integration",
    "targets": "list what can be compiled for here, and what to install for the rest",
    "rules": "list what is looked for in every program",
    "explain": "what a rule looks for, or what a collective of JAX does and how it transposes",
    "samples": "list the programs that come with shardscope",
}


def load(name: str) -> Command:
    """The command of that name."""
    module = import_module(f"{__name__}.{name}")
    return Command(module.__doc__ or "", module.configure, module.run)
