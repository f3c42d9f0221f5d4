"""One tree of modules, where a collective has its module by scopes, and another by the path of a parameter.

Linen calls the outermost module by its class, in whose scope all others are, and its parameters are
`state.params['params']['norm']['scale']`: `("params", "params", "norm")` is `("Model", "norm")`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..ir.name_scopes import keys_of_name
from ..report import Collective

Path = tuple[str, ...]


def in_one_tree(found: Sequence[Collective], arguments: Iterable[str]) -> tuple[Collective, ...]:
    """The collectives with the outermost scope in the place of what holds the parameters of the modules in it."""
    modules = [module for each in found for module in (each.module, *(part.module for part in each.parts))]
    holders = _holders(modules, [keys_of_name(name)[1:] for name in arguments])
    return tuple(_renamed(each, holders) for each in found) if holders else tuple(found)


def _holders(modules: Iterable[Path], arguments: Sequence[Path]) -> Mapping[Path, str]:
    """The keys that paths of arguments begin with, in front of names of modules, with the scope that has these."""
    keys = {key for path in arguments for key in path}
    inside: dict[str, set[str]] = {}
    for module in modules:
        if len(module) > 1 and module[0] not in keys and not module[1].isdecimal():
            inside.setdefault(module[0], set()).add(module[1])
    found: dict[Path, set[str]] = {}
    for path in arguments:
        for depth, key in enumerate(path):
            scopes = {scope for scope, names in inside.items() if key in names}
            if scopes and depth:
                found.setdefault(path[:depth], set()).update(scopes)
                break
    return {prefix: scopes.pop() for prefix, scopes in found.items() if len(scopes) == 1}


def _renamed(collective: Collective, holders: Mapping[Path, str]) -> Collective:
    module = _in_scope(collective.module, holders)
    parts = tuple(
        part if (inside := _in_scope(part.module, holders)) is part.module else replace(part, module=inside)
        for part in collective.parts
    )
    if module is collective.module and all(new is old for new, old in zip(parts, collective.parts, strict=True)):
        return collective
    return replace(collective, module=module, parts=parts)


def _in_scope(module: Path, holders: Mapping[Path, str]) -> Path:
    depth = next((depth for depth in range(1, len(module) + 1) if module[:depth] in holders), None)
    return module if depth is None else (holders[module[:depth]], *module[depth:])
