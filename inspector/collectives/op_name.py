"""What JAX writes into `op_name`: the path of transformations and primitives, `jit(f)/transpose(jvp(g))/psum`.

When XLA merges operations it joins their names and takes out what they have in common: `jit(f)/(jvp()/a:jvp()/b)/c`.
"""

from __future__ import annotations

import re

from ..report import Pass

_PATH = re.compile(r"\w+\(")
_MERGED = re.compile(r"(?P<before>(?:[^/]*+/)*?)\((?P<parts>.*)\)(?P<after>(?:/[^()]*+)?)", re.DOTALL)


def last_components(op_name: str) -> tuple[str, ...]:
    """The primitives that the paths end in."""
    return tuple(part.rpartition("/")[2].rstrip(":") for part in merged_parts(op_name))


def merged_parts(op_name: str) -> tuple[str, ...]:
    """The names that were merged into one, each whole again; one that was not merged is itself the only part."""
    merged = _MERGED.fullmatch(op_name)
    if merged is None:
        return (op_name,)
    return tuple(f"{merged['before']}{part}{merged['after']}" for part in _split(merged["parts"]))


def direction_of(op_name: str | None, *, differentiated: bool) -> Pass:
    """The pass that a path tells.

    In a program that was not differentiated all is forward. In one that was, a path without transformations (the
    optimizer's, or any in a shard_map up to JAX 0.7), an argument's name, and names of several passes tell nothing.
    """
    if op_name is None or not _PATH.match(op_name):
        return "unknown"
    parts = {_direction(part, differentiated) for part in merged_parts(op_name)}
    return parts.pop() if len(parts) == 1 else "unknown"


def _direction(path: str, differentiated: bool) -> Pass:
    if "rematted_computation" in path:
        return "recompute"
    if "transpose(" in path:
        return "backward"
    return "forward" if "jvp(" in path or not differentiated else "unknown"


def _split(text: str) -> list[str]:
    """The parts between colons that are in no parentheses."""
    parts, depth, start = [], 0, 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character in ":;" and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
