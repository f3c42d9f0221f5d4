"""The commands, in the order in which `--help` lists them; a command's module is imported when it is used."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """The functions of a command's module.

    `configure` adds the command's arguments to its parser; `run` returns the exit code. The module's docstring
    is shown by `--help`.
    """

    description: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


SUMMARIES = {
    "run": "capture a function and report how it is sharded",
    "trace": "run a script as it is, and list every program that JAX compiles",
    "ranks": "run a script as several processes, and compare the programs that they run",
    "open": "show a saved capture or compiler dumps",
    "diff": "compare two lowerings: commits, JAX versions, targets or files",
    "suggest": "search for shardings of the arguments that send less, or take less memory",
    "transfer": "say what devices receive for an array to be sharded otherwise",
    "check": "compare with golden files and budgets, for continuous integration",
    "validate": "evaluate the compiled program without its target, and compare it with the source",
    "serve": "show the screen of a command in a browser on this machine",
    "targets": "list the targets available here, and what to install for others",
    "rules": "list the rules",
    "explain": "explain a rule, or a JAX collective and its transpose",
    "samples": "list the sample programs",
    "completion": "print the completions for bash, zsh or fish",
}


def load(name: str) -> Command:
    """The command of that name."""
    module = import_module(f"{__name__}.{name}")
    return Command(module.__doc__ or "", module.configure, module.run)
