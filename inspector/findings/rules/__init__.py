"""The rules: each module of this folder has one, by the name RULE."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

from ...report import Finding, FindingPlace, Fix, SourcePosition
from ..rule import Rule, finding

RULES: tuple[Rule, ...] = tuple(
    import_module(f"{__name__}.{name}").RULE for name in sorted(module.name for module in iter_modules(__path__))
)

OF_ID = {rule.id: rule for rule in RULES}


def rule_named(name: str) -> Rule | None:
    """The rule of that id or slug."""
    return next((rule for rule in RULES if name.upper() == rule.id or name.lower() == rule.slug), None)


def similar_rules(name: str) -> list[str]:
    """Return the ids and slugs that are spelled much like a name that is not known."""
    number = re.fullmatch(r"(?i)ss0*(\d+)", name)
    if number is not None:
        return [rule.id for rule in RULES if int(rule.id[2:]) == int(number[1])]
    known = {text.lower(): text for rule in RULES for text in (rule.id, rule.slug)}
    return [known[text] for text in get_close_matches(name.lower(), known, 3, 0.7)]


def rule_of(found: Finding) -> Rule:
    """The rule that a finding is of."""
    return OF_ID[found.rule]


def suspect(
    rule: str, what: str, source: SourcePosition, message: str, fixes: Iterable[Fix], *, expected: int | None = None
) -> Finding:
    """A finding of a rule, by its id, that nothing but a trial of its fixes confirms, with the bytes it may save."""
    made = finding(OF_ID[rule], FindingPlace(what, source), message, confidence="likely", fixes=tuple(fixes))
    return replace(made, expected=(expected, None))
