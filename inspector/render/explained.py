"""What the catalogue of collectives says, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..catalog.collective import CollectiveKind, CollectiveRule, FormerName
from ..catalog.spellings import Entry, rule_of

SENDS = {
    ("ring", 1): "(n-1)/n of the larger side, for groups of n",
    ("ring", 2): "2 (n-1)/n of its operand, for groups of n",
    ("exchange", 1): "(n-1)/n of its operand, for groups of n",
}
PASSES = {
    "ring": "round the ring of its group",
    "exchange": "from each device to each other one: bound by the links through the middle",
    "pairs": "from device to device: bound by the longest way and the busiest link",
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
    yield f"  sends        {'its whole operand' if whole else SENDS[kind.pattern, kind.passes]}"
    yield f"  goes         {'twice ' if kind.passes == 2 else ''}{PASSES[kind.pattern]}"


def _rule_lines(rule: CollectiveRule) -> Iterator[str]:
    yield f"{rule.primitive}: {rule.summary}"
    yield f"  called by    {', '.join(f'jax.lax.{function}' for function in rule.functions)}"
    if rule.aliases:
        yield f"  also named   {', '.join(rule.aliases)}"
    yield f"  types        {_typing(rule)}"
    yield f"               {rule.example}"
    yield f"  lowers to    {'nothing: no communication' if rule.lowers_to is None else _communication(rule.lowers_to)}"
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


def _communication(kind: str) -> str:
    return f"{kind} (communication)"
