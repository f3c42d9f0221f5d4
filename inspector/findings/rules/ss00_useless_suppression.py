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
            fixes=advice("remove the comment" if each.rules else "use the rule's id or name as shown in the finding"),
        )


RULE = Rule(
    id="SS00",
    slug="useless-suppression",
    severity="warning",
    finds="A comment `# shardscope: ignore[…]` that suppresses nothing.",
    why="The finding that it suppressed is gone, or the comment never named it correctly. If it stays, it will hide"
    " the next finding on this line.",
    proof="The comment names no rule, or an unknown one; with --strict, also: the captured function includes this line,"
    " the rule was checked, and it found nothing there.",
    faulty='total = lax.psum(a, "x")  # shardscope: ignore',
    repaired='total = lax.psum(a, "x")  # shardscope: ignore[SS04] the weights are meant to count once per device',
    check=check,
    is_observation=True,
    by_hand="a comment does not change the program",
    reads="suppressions",
)
