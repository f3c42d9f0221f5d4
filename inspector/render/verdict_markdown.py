"""The results of checks as Markdown, for the comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from ..check.verdict import Verdict
from .diff_markdown import diff_to_markdown
from .markdown_text import plain, table
from .text.verdict import summary


def verdicts_to_markdown(verdicts: Sequence[Verdict]) -> str:
    """A table of all, and under it what differs."""
    rows = [("passed" if each.passed else "**failed**", each.name, summary(each)) for each in verdicts]
    lines = ["| | function | |", "| --- | --- | --- |"]
    lines += [f"| {word} | {plain(name)} | {plain(told)} |" for word, name, told in rows]
    parts = ["\n".join(lines)]
    for each in verdicts:
        over = [(broken.budget.text, broken.found) for broken in each.broken]
        parts += [f"### {plain(each.name)}"] if not each.passed else []
        parts += [table(("over budget", "there is"), over)] if over else []
        parts += [diff_to_markdown(each.changes).rstrip()] if each.changes is not None and each.differs else []
    return "\n\n".join(parts) + "\n"
