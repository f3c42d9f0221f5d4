"""The output formats: which functions write what in each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal

Kind = Literal["report", "reports", "comparison", "diff", "verdicts", "trace", "ranks", "suggestions", "links"]
"""A `Report`; several, or one, after each other; a `Comparison`; a `Diff`; the `Verdict`s of a check; a `Trace`;
a `Trace` of ranks; `Suggestions`; the `LinkedPart`s of a program."""

RENDERERS: Mapping[str, Mapping[Kind, str]] = {
    "text": {
        "report": "text:print_report",
        "comparison": "text.comparison:print_comparison",
        "diff": "text.comparison:print_diff",
        "verdicts": "text.comparison:print_verdicts",
        "trace": "text.comparison:print_trace",
        "ranks": "text.comparison:print_ranks",
        "suggestions": "text.suggestions:print_suggestions",
        "links": "text.links:print_links",
    },
    "json": {
        "report": "json:to_json",
        "comparison": "json.report:comparison_to_json",
        "diff": "json.diff:diff_to_json",
        "verdicts": "json.diff:verdicts_to_json",
        "trace": "json.trace:trace_to_json",
        "ranks": "json.trace:ranks_to_json",
        "suggestions": "json.suggestions:suggestions_to_json",
        "links": "json.links:links_to_json",
    },
    "markdown": {
        "reports": "markdown:to_markdown",
        "diff": "markdown:diff_to_markdown",
        "verdicts": "markdown:verdicts_to_markdown",
    },
    "html": {
        "report": "html:report_page",
        "comparison": "html:comparison_page",
        "diff": "html:diff_page",
        "verdicts": "html:verdicts_page",
        "trace": "html.comparison:trace_page",
        "ranks": "html.comparison:ranks_page",
    },
    "perfetto": {"report": "perfetto:report_to_perfetto", "comparison": "perfetto:comparison_to_perfetto"},
    "sarif": {"reports": "sarif:to_sarif"},
    "github": {"reports": "github:to_github"},
}
"""`module:function` in this folder, by format and subject; imported at its first use.

A function takes what is shown and returns bytes or a text; with a parameter `console` it prints on that, a rich one. It
may have the parameters `version`, of shardscope, `around`, the number of changes whose texts are shown, and `details`,
the sections to show in full.
"""


SECTIONS = (
    "findings",
    "collectives",
    "shardings",
    "variance",
    "values",
    "memory",
    "times",
    "messages",
    "passes",
    "stages",
)
"""Names that `--details` accepts; `tables.TABLES` has the tables of each."""


def formats(*kinds: Kind) -> tuple[str, ...]:
    """The formats in which one of these can be shown."""
    return tuple(name for name, functions in RENDERERS.items() if functions.keys() & set(kinds))


def renderer(format: str, *kinds: Kind) -> tuple[Kind, Callable[..., Any]]:
    """The function for the first of these that a format can show, and which that is."""
    functions = RENDERERS[format]
    kind = next(kind for kind in kinds if kind in functions)
    module, _, name = functions[kind].partition(":")
    return kind, getattr(import_module(f".{module}", __package__), name)
