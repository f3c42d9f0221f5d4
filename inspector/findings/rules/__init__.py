"""The rules: each module of this folder has one, by the name RULE."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..rule import Rule

RULES: tuple[Rule, ...] = tuple(
    import_module(f"{__name__}.{name}").RULE for name in sorted(module.name for module in iter_modules(__path__))
)


def rule_named(name: str) -> Rule | None:
    """The rule of that id or slug."""
    return next((rule for rule in RULES if name.upper() == rule.id or name.lower() == rule.slug), None)
