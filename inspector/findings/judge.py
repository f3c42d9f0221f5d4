"""From what the rules find to what is told: what is wanted, and what a comment says is known already.

The comments are the user's: `# shardscope: ignore[SS04] reason`.
"""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from ..ir.derived import derived
from ..ir.program import Program, SourceFile
from ..report import SEVERITIES, Finding, Report, Suppressed, Suppression
from .policy import Policy
from .rule import Rule
from .rules import RULES, rule_named

MARK = b"shardscope:"

MAX_COMMENT_CHARACTERS = 1000
"""Characters of a comment that are read."""

_COMMENT = re.compile(r"#\s*shardscope:\s*ignore\b\s*(?:\[([^\]]*)\])?[\s:,–-]*(.*?)\s*(?=$|\s#)")

NO_PYTHON = (tokenize.TokenError, SyntaxError, UnicodeDecodeError, RecursionError, MemoryError)

_LAYOUT = frozenset((tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER))
"""Tokens with which no statement begins."""


def with_findings(report: Report, policy: Policy) -> Report:
    """The report with what is found in it, less what the user has said to know."""
    named = policy.rules or ()
    report = replace(
        report,
        thresholds=policy.thresholds,
        lists_implicit=policy.strict or any(rule.fails_strict and rule.id in named for rule in RULES),
    )
    told, suppressed, used = [], [], set()
    comments = _Comments(report.program)
    script = "" if report.capture.subject is None else report.capture.subject.script or ""
    wanted = [rule for rule in RULES if policy.wants(rule.id)]
    strict = {rule.id for rule in wanted if policy.strict and rule.fails_strict}
    for found in _findings(report, (rule for rule in wanted if rule.reads == "program")):
        comment = comments.about(found)
        pattern = policy.pattern_against(found, script)
        if comment is not None:
            used.add(comment)
            suppressed.append(Suppressed(found, comment))
        elif pattern is not None:
            by = Suppression(policy.settings, 0, (found.rule,), f"per-path-ignores of {pattern}")
            suppressed.append(Suppressed(found, by))
        else:
            told.append(replace(found, severity="error") if found.rule in strict else found)
    idle = tuple(_idle(comments.all() - used, policy, _lines(report.program)))
    report = replace(report, suppressed=tuple(suppressed), idle=idle)
    more = _findings(report, (rule for rule in wanted if rule.reads == "suppressions"))
    return replace(report, findings=(*told, *more))


def _findings(report: Report, rules: Iterable[Rule]) -> list[Finding]:
    """What these rules find, worst first, then what costs most, else in the order of the rules."""
    found = (each for rule in rules for each in rule.check(report))
    return sorted(found, key=_rank)


def _rank(found: Finding) -> tuple[int, float, int]:
    return SEVERITIES.index(found.severity), -(found.saved_seconds or 0.0), -(found.saved_bytes or 0)


class _Comments:
    """The suppressions in the files that a capture is about."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._files: dict[str, tuple[Suppression, ...]] = {}
        if program.script is not None:
            self._of(program.script.name)

    def about(self, found: Finding) -> Suppression | None:
        """The one that names the finding's rule at the innermost of its lines that has one."""
        for frame in found.place.source.stack:
            for each in self._of(frame.file):
                if each.first <= frame.line <= each.last and found.rule in _ids(each.rules):
                    return each
        return None

    def all(self) -> set[Suppression]:
        """Those of all files that were looked into."""
        return {each for file in self._files.values() for each in file}

    def _of(self, file: str) -> tuple[Suppression, ...]:
        file = os.path.normpath(file)
        if file not in self._files:
            source = self._program.file(file)
            self._files[file] = () if source is None else suppressions_in(source)
        return self._files[file]


def _idle(unused: Iterable[Suppression], policy: Policy, lines: set[tuple[str, int]]) -> Iterator[Suppression]:
    """Those that cannot work; where the reader is strict, also those that have nothing to do.

    A line that the captured function does not get to, or a rule that is not looked for, says nothing of a comment.
    """
    for each in sorted(unused, key=lambda comment: (comment.file, comment.line)):
        unknown = [name for name in each.rules if rule_named(name) is None]
        here = any((os.path.normpath(each.file), line) in lines for line in range(each.first, each.last + 1))
        if not each.rules:
            yield replace(each, problem="it names no rule, as in ignore[SS04]")
        elif unknown:
            yield replace(each, problem=f"there is no rule {', '.join(unknown)}")
        elif policy.strict and here and all(map(policy.wants, _ids(each.rules))):
            yield replace(each, problem=f"nothing that {', '.join(each.rules)} finds is here")


def _ids(names: Iterable[str]) -> list[str]:
    return [rule.id for rule in map(rule_named, names) if rule is not None]


def _lines(program: Program) -> set[tuple[str, int]]:
    """The lines that something in the program comes from."""
    text = program.jaxpr
    frames = () if text is None else text.program.frames
    return {(os.path.normpath(frame.file), frame.line) for frame in frames}


@derived
def suppressions_in(source: SourceFile) -> tuple[Suppression, ...]:
    """The comments of a Python file; none of a text that is no Python. Nothing of it is executed.

    A comment holds for the whole statement that it stands in or behind, of a compound one for its head; on a line of
    its own for the next one.
    """
    if MARK not in source.data:
        return ()
    found: list[Suppression] = []
    with suppress(*NO_PYTHON):  # what was found before the place where it ceases to be Python holds
        found.extend(_read(source))
    return tuple(found)


def _read(source: SourceFile) -> Iterator[Suppression]:
    waiting: list[tokenize.TokenInfo] = []
    first: int | None = None
    for token in tokenize.tokenize(io.BytesIO(source.data).readline):
        if token.type == tokenize.COMMENT:
            waiting.append(token)
        elif token.type == tokenize.NEWLINE:
            last = token.start[0]
            for comment in waiting:
                yield from _suppression(source.name, comment, first or last, last)
            waiting, first = [], None
        elif first is None and token.type not in _LAYOUT:
            first = token.start[0]


def _suppression(file: str, comment: tokenize.TokenInfo, first: int, last: int) -> Iterator[Suppression]:
    said = _COMMENT.search(comment.string[:MAX_COMMENT_CHARACTERS])
    if said is not None:
        names = tuple(filter(None, (name.strip() for name in (said[1] or "").split(","))))
        yield Suppression(file, comment.start[0], names, said[2], min(first, comment.start[0]), last)
