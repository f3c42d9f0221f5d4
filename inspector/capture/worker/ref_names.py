"""Names of arguments and results where some arguments are Refs, the mutable arrays of `jax.new_ref`.

To lower a Ref, JAX makes an argument and one more result of it, and loses the names of all of them on the way. They go
where JAX puts those of other programs: an argument's into its location, a result's into `jax.result_info`. Which
argument is which, JAX keeps in a private attribute.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_MAIN = re.compile(r"^ *func\.func public @main\(.*$", re.MULTILINE)
_ARGUMENT = re.compile(r'(%arg(\d+): (?:[^%"]|"(?:[^"\\]|\\.)*")*? )loc\((?:unknown|#loc)\)')
_RESULT = re.compile(r'jax\.result_info = "(?:[^"\\]|\\.)*"')


class Names(NamedTuple):
    """Of each argument and result of a lowered module; an empty one where there is none to give."""

    arguments: Sequence[str]
    results: Sequence[str]


def names_of(lowered: Any, arguments: Sequence[str], results: Sequence[str]) -> Names | None:
    """The names in a lowered program, from those of the function's own arguments and results.

    None where no Ref takes part, or where JAX does not tell. A Ref that the function closes over has no name.
    """
    told = getattr(getattr(lowered, "_lowering", None), "compile_args", None) or {}
    mutated, kept, every = (told.get(key) for key in ("mut", "kept_var_idx", "all_args_info"))
    if mutated is None or kept is None or not hasattr(mutated, "in_mut") or not hasattr(mutated, "out_mut"):
        return None
    constants = max(0, len(getattr(every, "in_avals", arguments)) - len(arguments))
    given = [*[""] * constants, *arguments]
    held = [given[number] for number in sorted(kept) if number < len(given)] + [""] * len(mutated.in_mut)
    own = iter(results)
    left = ((next(own, "") if number is None else _afterwards(held[number])) for number in mutated.out_mut)
    return Names(held, list(left))


def named(text: str, names: Names) -> str:
    """A module's text with names for the arguments and results of its main function that have none."""

    def signature(line: re.Match[str]) -> str:
        inputs, arrow, outputs = line[0].partition(" -> ")
        if len(re.findall(r"%arg\d+:", inputs)) != len(names.arguments):
            return line[0]
        inputs = _ARGUMENT.sub(lambda one: _located(one[1], names.arguments[int(one[2])]) or one[0], inputs)
        if len(_RESULT.findall(outputs)) == len(names.results):
            rest = iter(names.results)
            outputs = _RESULT.sub(lambda one: _told(next(rest)) or one[0], outputs)
        return f"{inputs}{arrow}{outputs}"

    return _MAIN.sub(signature, text, count=1)


def _afterwards(name: str) -> str:
    return f"{name} afterwards" if name else ""


def _located(argument: str, name: str) -> str:
    return f"{argument}loc({_quoted(name)})" if name else ""


def _told(name: str) -> str:
    return f"jax.result_info = {_quoted(name)}" if name else ""


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
