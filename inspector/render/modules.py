"""Paths of modules: those that differ in the number of a layer as one, and what they communicate as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..report import Collective

Path = tuple[str, ...]

MAX_PATHS = 3
"""Groups of paths that are named."""


def modules_of(collective: Collective) -> Sequence[Path]:
    """The paths of a collective, or of those that were combined in it, without the numbers of layers."""
    paths = [part.module for part in collective.parts] if collective.parts else [collective.module]
    return [tuple("*" if key.isdecimal() else key for key in path) for path in paths]


def module_names(paths: Iterable[Path]) -> list[str]:
    """`layers[*].attn.{wq,wk}`: the last keys of paths that have the others in common together."""
    inside: dict[Path, dict[str, None]] = {}
    for path in paths:
        inside.setdefault(path[:-1], {})[path[-1]] = None
    names = [_name(parent, list(keys)) for parent, keys in inside.items()]
    more = [f"and {len(names) - MAX_PATHS} more"] if len(names) > MAX_PATHS else []
    return [*names[:MAX_PATHS], *more]


def _name(parent: Path, keys: Sequence[str]) -> str:
    last = keys[0] if len(keys) == 1 else f"{{{','.join(keys)}}}"
    return ".".join((*parent, last)).replace(".*", "[*]")


@dataclass(slots=True)
class Module:
    """What the collectives of a module and of those in it send in a step."""

    wire_bytes: int = 0
    inside: dict[str, Module] = field(default_factory=dict)


def module_tree(collectives: Iterable[Collective]) -> Module:
    """The modules of some collectives; a combined one's bytes are divided among its parts by their sizes."""
    root = Module()
    for each in collectives:
        total = (each.wire_bytes or 0) * (each.executions or 1)
        sizes = [part.type.bytes or 0 for part in each.parts] or [1]
        for path, size in zip(modules_of(each), sizes, strict=True):
            module = root
            for key in ("", *path):
                module = module if not key else module.inside.setdefault(key, Module())
                module.wire_bytes += round(total * size / (sum(sizes) or 1))
    return root


def rows_of_tree(inside: Mapping[str, Module], depth: int = 0) -> Iterable[tuple[int, str, Module]]:
    """Each module below one, with its depth and name, those that send most first; layers are one with their parent."""
    for name, module in sorted(inside.items(), key=lambda item: -item[1].wire_bytes):
        label, shown = name, module
        while [*shown.inside] == ["*"]:
            label, shown = f"{label}[*]", shown.inside["*"]
        yield depth, label, shown
        yield from rows_of_tree(shown.inside, depth + 1)
