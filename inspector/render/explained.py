"""Explanations of collectives, rules and chips, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill, indent

from ..catalog.collective import CollectiveKind, CollectiveRule, FormerName
from ..catalog.spellings import Entry, rule_of
from ..report import Rule
from ..targets.chips import PLATFORMS, Chip, Figure, chips_of
from ..units import format_count, format_seconds

SENDS = {
    ("ring", 1): "(n-1)/n of the larger side, for groups of n",
    ("ring", 2): "2 (n-1)/n of its operand, for groups of n",
    ("exchange", 1): "(n-1)/n of its operand, for groups of n",
}
PASSES = {
    "ring": "around the ring of its group",
    "exchange": "from each device to every other one: bound by the links across the middle",
    "pairs": "from device to device: bound by the longest route and the busiest link",
}


def entry_text(entry: Entry) -> str:
    """Return all that an entry of the catalogue says."""
    match entry:
        case CollectiveKind():
            lines = _kind_lines(entry)
        case CollectiveRule():
            lines = _rule_lines(entry)
        case FormerName(name, primitive, note):
            rule = rule_of(primitive)
            lines = iter((f"{name}: {note}", *(() if rule is None else _rule_lines(rule))))
    return "".join(f"{line}\n" for line in lines)


def _kind_lines(kind: CollectiveKind) -> Iterator[str]:
    yield f"{kind.name}: {kind.summary}"
    halves = ("", "-done") if kind.partners else ("", "-start", "-done")
    opcodes = [f"{opcode}{half}" for opcode in (*kind.hlo, *kind.partners) for half in halves]
    calls = [f"custom_call @{target}" for target in kind.custom_calls]
    fused = [] if kind.fused is None else [f"a fusion {kind.fused[1]} of {kind.fused[0]}"]
    rules = kind.primitives
    spelled = {
        "JAX": [f"jax.lax.{name}" for name in dict.fromkeys(name for rule in rules for name in rule.functions)],
        "jaxpr": list(dict.fromkeys(name for rule in rules for name in (rule.primitive, *rule.aliases))),
        "StableHLO": [*kind.stablehlo, *calls],
        "HLO": [*opcodes, *fused],
    }
    yield from (f"  {language:<12} {', '.join(names)}" for language, names in spelled.items() if names)
    whole = kind.whole or kind.pattern == "pairs"
    sent = "its full operand" if whole else SENDS[kind.pattern, kind.passes]
    yield f"  sends        {'at most ' if kind.at_most else ''}{sent}"
    yield f"  goes         {'twice ' if kind.passes == 2 else ''}{PASSES[kind.pattern]}"


def _rule_lines(rule: CollectiveRule) -> Iterator[str]:
    yield f"{rule.primitive}: {rule.summary}"
    yield f"  called by    {', '.join(f'jax.lax.{function}' for function in rule.functions)}"
    if rule.aliases:
        yield f"  also named   {', '.join(rule.aliases)}"
    yield f"  types        {_typing(rule)}"
    yield f"               {rule.example}"
    lowered = "nothing: no communication" if rule.lowers_to is None else f"{rule.lowers_to} (communication)"
    yield f"  lowers to    {lowered}"
    yield f"  transposes   {'not linear: it has no transpose' if rule.transpose is None else f'to {rule.transpose}'}"
    yield f"  the devices' results {'are equal' if rule.equal else 'may differ'} along the axis"
    if rule.note:
        yield f"  {rule.note}"


def table_text(rules: Iterable[CollectiveRule]) -> str:
    """Return all primitives, a line each."""
    rows = [("primitive", "called by", "types", "lowers to", "transposes")]
    for rule in rules:
        called = ", ".join(rule.functions)
        rows.append((rule.primitive, called, _typing(rule), rule.lowers_to or "nothing", rule.transpose or "–"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def _typing(rule: CollectiveRule) -> str:
    return f"{rule.takes or '()'} → {rule.gives}"


WIDTH = 100


def rule_text(rule: Rule) -> str:
    """One rule, in full."""
    parts = [("finds", rule.finds), ("why", rule.why), ("evidence", rule.proof), ("trials", _trial(rule))]
    if rule.threshold is not None:
        parts.append(("settings", _threshold(rule)))
    words = "".join(f"{fill(f'  {name:<9}{text}', WIDTH, subsequent_indent=' ' * 11)}\n" for name, text in parts)
    code = f"  faulty\n{indent(rule.faulty, ' ' * 6)}\n  repaired\n{indent(rule.repaired, ' ' * 6)}\n"
    return f"{rule.id} {rule.slug} ({rule.severity})\n{words}{code}"


def _threshold(rule: Rule) -> str:
    number = f"{rule.threshold:.0f}" if rule.threshold and rule.threshold >= 1 else f"{rule.threshold:g}"
    return f"[tool.shardscope.thresholds] {rule.id} = {number}: {rule.threshold_is}"


def _trial(rule: Rule) -> str:
    return "; otherwise ".join(filter(None, (rule.tries, rule.by_hand and f"none: {rule.by_hand}")))


def rules_text(rules: Iterable[Rule]) -> str:
    """All of them, a line each."""
    return "".join(f"{rule.id}  {rule.severity:<8}  {rule.slug:<30}  {rule.finds}\n" for rule in rules)


def rules_page(rules: Iterable[Rule]) -> str:
    """All of them in full, as Markdown."""
    return (
        "# Rules\n\nThe problems that `shardscope run` reports. `shardscope explain SS01` prints one rule.\n"
        + "".join(map(_page, rules))
    )


def _page(rule: Rule) -> str:
    settings = "" if rule.threshold is None else f"**Settings.** `{_threshold(rule)}`\n\n"
    return (
        f"\n## {rule.id} {rule.slug}\n\n{fill(rule.finds, 120)}\n\n**Severity:** {rule.severity}\n\n"
        f"{fill(f'**Why.** {rule.why}', 120)}\n\n{fill(f'**Evidence.** {rule.proof}', 120)}\n\n"
        f"{fill(f'**Trials.** {_trial(rule)}.', 120)}\n\n{settings}"
        f"```python\n# faulty\n{rule.faulty}\n\n# repaired\n{rule.repaired}\n```\n"
    )


PER_SECOND = {"flops": "FLOP/s", "flops_int8": "op/s"}
"""The units of the rates that are not bandwidths."""


def chip_lines() -> Iterator[str]:
    """The figures by platform: those that several chips have alike first and once, then each chip's own."""
    for platform in PLATFORMS:
        chips = tuple(chips_of(platform).values())
        shared = _shared(chips)
        yield f"{platform}, all chips"
        yield from _lines(shared)
        yield ""
        for chip in chips:
            yield f"{platform}:{chip.name}  {chip.title}"
            yield from _lines({name: figure for name, figure in chip.figures.items() if name not in shared})
            yield ""


def _shared(chips: Sequence[Chip]) -> Mapping[str, Figure]:
    first, *others = chips
    return {
        name: figure
        for name, figure in first.figures.items()
        if all(other.figures.get(name) == figure for other in others)
    }


def _lines(figures: Mapping[str, Figure]) -> Iterator[str]:
    for name, figure in figures.items():
        yield f"  {name.replace('_', ' '):<20}{_value(name, figure.value):<15}{figure.source}"


def _value(name: str, value: float) -> str:
    if name.endswith("_share"):
        return f"{value:.0%}"
    if name in PER_SECOND or name.endswith("_bandwidth"):
        return format_count(value) + PER_SECOND.get(name, "B/s")
    return f"{format_count(value)}B" if name.endswith("_bytes") else format_seconds(value)
