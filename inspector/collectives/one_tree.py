"""One tree of modules, where a collective has its module by scopes, and another by the path of a parameter.

Linen calls the outermost module by its class, in whose scope all others are, and its parameters are
`state.params['params']['norm']['scale']`: `("params", "params", "norm")` is `("Model", "norm")`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...parsers.record import Record
from ..ir.name_scopes import keys_of_name
from ..report import Collective

Path = tuple[str, ...]


def in_one_tree(found: Sequence[Collective], arguments: Iterable[str]) -> tuple[Collective, ...]:
    """The collectives with the outermost scope in the place of what holds the parameters of the modules in it."""
    modules = [module for each in found for module in (each.module, *(part.module for part in each.parts))]
    tree = _tree(modules, [keys_of_name(name)[1:] for name in arguments])
    return tuple(_renamed(each, tree) for each in found) if tree.holders else tuple(found)


class _Tree(Record, frozen=True):
    """The keys that paths of arguments begin with, in front of names of modules, with the scope that has these.

    `inside` are these names, each with its scope: weights and what optimizers keep of them may have only the keys from
    there on in common.
    """

    holders: Mapping[Path, str]
    inside: Mapping[str, str]

    def path(self, module: Path) -> Path:
        """The path of a module from its scope on; the same one where that is not known."""
        if module and (scope := self.inside.get(module[0])) is not None:
            return (scope, *module)
        depth = next((depth for depth in range(1, len(module) + 1) if module[:depth] in self.holders), None)
        return module if depth is None else (self.holders[module[:depth]], *module[depth:])


def _tree(modules: Iterable[Path], arguments: Sequence[Path]) -> _Tree:
    keys = {key for path in arguments for key in path}
    scopes: dict[str, set[str]] = {}
    for module in modules:
        if len(module) > 1 and module[0] not in keys and not module[1].isdecimal():
            scopes.setdefault(module[1], set()).add(module[0])
    holders: dict[Path, set[str]] = {}
    inside: dict[str, str] = {}
    for path in arguments:
        depth, around = next(((depth, scopes[key]) for depth, key in enumerate(path) if key in scopes), (0, set()))
        if depth:
            holders.setdefault(path[:depth], set()).update(around)
            inside |= dict.fromkeys(path[depth : depth + 1], *around) if len(around) == 1 else {}
    return _Tree({prefix: one for prefix, (one, *others) in holders.items() if not others}, inside)


def _renamed(collective: Collective, tree: _Tree) -> Collective:
    module = tree.path(collective.module)
    parts = tuple(
        part if (path := tree.path(part.module)) is part.module else replace(part, module=path)
        for part in collective.parts
    )
    if module is collective.module and all(new is old for new, old in zip(parts, collective.parts, strict=True)):
        return collective
    return replace(collective, module=module, parts=parts)
