"""SS00: a comment that is to suppress a finding, and does not."""

from __future__ import annotations

from collections.abc import Iterator

from ....parsers.source import Frame
from ...report import Finding, FindingPlace, Report, SourcePosition, file_and_line
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """Each suppression of which it is known that it is of no use."""
    for each in report.idle:
        place = SourcePosition((Frame(each.file, "", each.line),), "exact")
        named = f"[{', '.join(each.rules)}]" if each.rules else ""
        yield finding(
            RULE,
            FindingPlace(f"ignore{named}", place),
            f"ignore{named} in {file_and_line(each.file, each.line)} suppresses nothing: {each.problem}",
            confidence="proved",
            fixes=advice("remove the comment" if each.rules else "name the rule, as the finding names it"),
        )


RULE = Rule(
    id="SS00",
    slug="useless-suppression",
    severity="warning",
    finds="A comment `# shardscope: ignore[…]` that suppresses nothing.",
    why="What it was written for is gone, or was never found by that name; left there, it will hide the next fault on"
    " this line.",
    proof="It names no rule, or one that there is not; or, under --strict, the captured function goes through this"
    " line, the rule was looked for, and found nothing there.",
    faulty='total = lax.psum(a, "x")  # shardscope: ignore',
    repaired='total = lax.psum(a, "x")  # shardscope: ignore[SS04] the weights are meant to count once per device',
    check=check,
    by_hand="it is a comment: the program does not change",
    reads="suppressions",
)
