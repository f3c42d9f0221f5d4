"""Paths of modules: those that differ in the number of a layer as one, and what they communicate as a tree."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..report import Collective, CollectivePart

Path = tuple[str, ...]

MAX_PATHS = 3
"""Groups of paths that are named."""

MAX_NAME = 60
"""Characters of a path that is named with all of its keys."""

MIN_ALIKE = 3
"""So many modules that differ in a number are layers, and not the parts of one, as two attentions are."""


def modules_of(collective: Collective, *, scalars: bool = True) -> Sequence[Path]:
    """The paths of a collective, or of those that were combined in it, without the numbers of layers.

    Without `scalars` those of single numbers are left out, such as a loss among gradients.
    """
    paths = [part.module for part in shown_parts(collective, scalars=scalars)] or [collective.module]
    return [tuple("*" if key.isdecimal() else key for key in path) for path in paths]


def shown_parts(collective: Collective, *, scalars: bool) -> Sequence[CollectivePart]:
    """The parts of a combined collective, with those of single numbers where there are no others."""
    arrays = collective.parts if scalars else [part for part in collective.parts if part.type.elements != 1]
    return arrays or collective.parts


_DIGITS = re.compile(r"\d+")
_NUMBERED = re.compile(r"(.*[A-Za-z]_?)\d+")


def layers_in(paths: Iterable[Path]) -> frozenset[Path]:
    """The paths of layers: of modules of modules that have one name in one place, but for a number.

    Modules with simple ones in them are layers if there are `MIN_ALIKE` with the same ones, as Haiku has them.
    """
    numbered: dict[Path, set[str]] = {}
    inside: dict[Path, set[str]] = {}
    for path in paths:
        for depth, key in enumerate(path[:-1]):
            if (found := _NUMBERED.fullmatch(key)) and depth < len(path) - 2:
                numbered.setdefault((*path[:depth], found[1]), set()).add(key)
            elif found:
                inside.setdefault(path[: depth + 1], set()).add(path[-1])
    alike: dict[tuple[Path, frozenset[str]], set[str]] = {}
    for path, names in inside.items():
        if len(names) > 1:
            alike.setdefault(((*path[:-1], _NUMBERED.sub(r"\1", path[-1])), frozenset(names)), set()).add(path[-1])
    for (path, _), keys in alike.items():
        if len(keys) >= MIN_ALIKE:
            numbered.setdefault(path, set()).update(keys)
    return frozenset((*path[:-1], key) for path, keys in numbered.items() if len(keys) > 1 for key in keys)


def without_layers(paths: Iterable[Path], layers: Collection[Path]) -> list[Path]:
    """Paths with `block_*` for the layers `block_0` and `block_1`."""

    def key_at(path: Path, depth: int) -> str:
        return _NUMBERED.sub(r"\1*", path[depth]) if path[: depth + 1] in layers else path[depth]

    return [tuple(key_at(path, depth) for depth in range(len(path))) for path in paths]


def without_numbers(path: str) -> str:
    """A value's path with `*` for the numbers in it: the same for what is alike in all layers."""
    return _DIGITS.sub("*", path)


def module_names(paths: Iterable[Path]) -> list[str]:
    """`layers[*].attn.{wq,wk}`: the last keys of paths that have the others in common together, in the order given."""
    inside: dict[tuple[Path, str], dict[str, None]] = {}
    for path in paths:
        alone = "" if len(path) > 1 else path[-1]
        inside.setdefault((path[:-1], alone), {})[path[-1]] = None
    names = [_name(parent, list(keys)) for (parent, _), keys in inside.items()]
    more = [f"and {len(names) - MAX_PATHS} more"] if len(names) > MAX_PATHS else []
    return [*names[:MAX_PATHS], *more]


def _name(parent: Path, keys: Sequence[str]) -> str:
    last = keys[0] if len(keys) == 1 else f"{{{','.join(keys)}}}"
    is_short = len(parent) < 3 or sum(map(len, (*parent, last))) + len(parent) <= MAX_NAME
    shown = parent if is_short else (parent[0], "…", parent[-1])
    return ".".join((*shown, last)).replace(".*", "[*]")


@dataclass(slots=True)
class Module:
    """Bytes that the collectives of a module, and of those in it, send in a step."""

    wire_bytes: int = 0
    inside: dict[str, Module] = field(default_factory=dict)


def module_tree(collectives: Iterable[Collective]) -> Module:
    """The modules of some collectives; a combined one's bytes are divided among its parts by their sizes."""
    root = Module()
    sent: list[tuple[Path, int]] = []
    for each in collectives:
        total = (each.wire_bytes or 0) * (each.executions or 1)
        sizes = [part.type.bytes or 0 for part in each.parts] or [1]
        shares = [round(total * size / (sum(sizes) or 1)) for size in sizes]
        sent += zip(modules_of(each), shares, strict=True)
    paths = [path for path, _ in sent]
    for path, (_, share) in zip(without_layers(paths, layers_in(paths)), sent, strict=True):
        module = root
        for key in ("", *path):
            module = module if not key else module.inside.setdefault(key, Module())
            module.wire_bytes += share
    return root


def rows_of_tree(inside: Mapping[str, Module], depth: int = 0) -> Iterable[tuple[int, str, Module]]:
    """Each module below one, with its depth and name, those that send most first; an only child is one with it."""
    for name, module in sorted(inside.items(), key=lambda item: -item[1].wire_bytes):
        label, shown = name, module
        while len(shown.inside) == 1 and (only := next(iter(shown.inside.items())))[1].wire_bytes == shown.wire_bytes:
            label, shown = f"{label}[*]" if only[0] == "*" else f"{label}.{only[0]}", only[1]
        yield depth, label, shown
        yield from rows_of_tree(shown.inside, depth + 1)
