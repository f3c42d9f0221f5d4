"""The findings that a reader selects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ...parsers.source import name_set
from . import Finding


@dataclass(frozen=True, slots=True)
class Policy:
    """The selected rules, and where they are ignored.

    `rules` are ids, None for all of them, less those `without`. `elsewhere` says for patterns of paths which rules do
    not count in such files; patterns are relative to `root` and match as `fnmatch` does, so that `*` takes in slashes
    too, or match the file's name alone. `settings` is the file that says all that. `thresholds` replace those of the
    rules, by id. `strict` makes errors of communication that nobody asked for, and tells of suppressions that suppress
    nothing.
    """

    rules: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    elsewhere: tuple[tuple[str, frozenset[str]], ...] = ()
    root: str = ""
    settings: str = ""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("rules", "without"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, name_set(value))

    def wants(self, rule: str) -> bool:
        """Return whether a rule is selected."""
        return rule not in self.without and (self.rules is None or rule in self.rules)

    def pattern_against(self, found: Finding, script: str) -> str | None:
        """The first pattern for which a finding does not count where it is; a finding of no line is of the script."""
        frame = found.place.source.frame
        file = os.path.normpath(script if frame is None else frame.file)
        relative = os.path.relpath(file, self.root) if self.root and os.path.isabs(file) else file
        names = (relative.replace(os.sep, "/"), os.path.basename(file))
        for pattern, rules in self.elsewhere:
            if found.rule in rules and any(fnmatchcase(name, pattern) for name in names):
                return pattern
        return None


EVERYTHING = Policy()
"""The selection where nothing is selected."""
