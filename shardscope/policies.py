"""The reported findings: those of the command line, else of the settings."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from shardscope.configuration import TABLE, Configuration, Found
from shardscope.inspector.findings.policy import Policy
from shardscope.inspector.findings.rule import Rule
from shardscope.inspector.findings.rules import RULES, rule_named
from shardscope.parsers.errors import ShardscopeError


def policy_of(found: Found, select: str | None = None, ignore: str | None = None, strict: bool = False) -> Policy:
    """Return the requested policy; `select` and `ignore` are lists of rules, separated by commas.

    Raises:
        ShardscopeError: there is no such rule, or it has no threshold; of the settings, the text names file and key.
    """
    said = found.configuration
    if found.file is not None:
        _check(found.file, said)
    chosen = said.select if select is None else _listed(select)
    return Policy(
        rules=None if chosen is None else _ids(chosen),
        without=_ids(said.ignore if ignore is None else _listed(ignore)),
        elsewhere=tuple((path, _ids(rules)) for path, rules in said.per_path_ignores.items()),
        root="" if found.file is None else str(found.file.parent),
        settings="" if found.file is None else str(found.file),
        thresholds={_rule(name).id: value for name, value in said.thresholds.items()},
        strict=strict or said.strict,
    )


def _check(file: Path, said: Configuration) -> None:
    lists: Iterable[tuple[str, Iterable[str]]] = (
        ("select", said.select or ()),
        ("ignore", said.ignore),
        *((f"per-path-ignores.{path!r}", rules) for path, rules in said.per_path_ignores.items()),
        ("thresholds", said.thresholds),
    )
    for key, names in lists:
        for name in names:
            try:
                rule = _rule(name)
            except ShardscopeError as error:
                raise ShardscopeError(f"{file}: [{TABLE}] {key}: {error}") from None
            if key == "thresholds" and rule.threshold is None:
                raise ShardscopeError(f"{file}: [{TABLE}] {key}: {rule.id} {rule.slug} has no threshold")


def _rule(name: str) -> Rule:
    rule = rule_named(name)
    if rule is None:
        near = get_close_matches(name, [text for each in RULES for text in (each.id, each.slug)], n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ShardscopeError(f"unknown rule {name!r}; {meant}`shardscope rules` lists them")
    return rule


def _ids(names: Iterable[str]) -> frozenset[str]:
    return frozenset(_rule(name).id for name in names)


def _listed(names: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in names.split(","))))
