"""A rule as text: for a terminal, and as a page."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill, indent

from ..findings.rule import Rule

WIDTH = 100


def rule_text(rule: Rule) -> str:
    """One rule, in full."""
    parts = [("finds", rule.finds), ("why", rule.why), ("proof", rule.proof), ("--verify", _trial(rule))]
    if rule.threshold is not None:
        parts.append(("settings", _threshold(rule)))
    words = "".join(f"{fill(f'  {name:<9}{text}', WIDTH, subsequent_indent=' ' * 11)}\n" for name, text in parts)
    code = f"  faulty\n{indent(rule.faulty, ' ' * 6)}\n  repaired\n{indent(rule.repaired, ' ' * 6)}\n"
    return f"{rule.id} {rule.slug} ({rule.severity})\n{words}{code}"


def _threshold(rule: Rule) -> str:
    number = f"{rule.threshold:.0f}" if rule.threshold and rule.threshold >= 1 else f"{rule.threshold:g}"
    return f"[tool.shardscope.thresholds] {rule.id} = {number}: {rule.threshold_is}"


def _trial(rule: Rule) -> str:
    return f"tries {rule.tries}" if rule.tries else f"tries nothing: {rule.by_hand}"


def rules_text(rules: Iterable[Rule]) -> str:
    """All of them, a line each."""
    return "".join(f"{rule.id}  {rule.severity:<8}  {rule.slug:<30}  {rule.finds}\n" for rule in rules)


def rules_page(rules: Iterable[Rule]) -> str:
    """All of them in full, as Markdown."""
    return "# Rules\n\nWhat `shardscope run` looks for; `shardscope explain SS01` prints one of them.\n" + "".join(
        map(_page, rules)
    )


def _page(rule: Rule) -> str:
    settings = "" if rule.threshold is None else f"**Settings.** `{_threshold(rule)}`\n\n"
    return (
        f"\n## {rule.id} {rule.slug}\n\n{fill(rule.finds, 120)}\n\n**Severity:** {rule.severity}\n\n"
        f"{fill(f'**Why.** {rule.why}', 120)}\n\n{fill(f'**What proves it.** {rule.proof}', 120)}\n\n"
        f"{fill(f'`--verify` {_trial(rule)}.', 120)}\n\n{settings}"
        f"```python\n# faulty\n{rule.faulty}\n\n# repaired\n{rule.repaired}\n```\n"
    )
