"""The rules: each module of this folder has one, by the name RULE."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ...report import Finding
from ..rule import Rule

RULES: tuple[Rule, ...] = tuple(
    import_module(f"{__name__}.{name}").RULE for name in sorted(module.name for module in iter_modules(__path__))
)


def rule_named(name: str) -> Rule | None:
    """The rule of that id or slug."""
    return next((rule for rule in RULES if name.upper() == rule.id or name.lower() == rule.slug), None)


def is_observation(found: Finding) -> bool:
    """Return whether a finding is of a rule that says what a program does against what its author requested."""
    rule = rule_named(found.rule)
    return rule is not None and rule.is_observation
