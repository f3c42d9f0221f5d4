"""Writes the tables of the grammars `parsers/*.lark`, which the parsers read at run time: `make grammars`.

The automaton is what Lark's own stand-alone parsers are made of (`Lark.memo_serialize`, as in `lark.tools.standalone`).
The scanners follow the order that Lark documents for terminals: priority, then longest match, then length, then name.
States are numbered by the way from the start, so that the same grammar gives the same file in every process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef
from shardscope.parsers.grammar import STARTS, lark_of
from shardscope.parsers.lalr.automaton import END, FOLDER


def main() -> None:
    """Writes one file for each grammar."""
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.json"):
        stale.unlink()
    for name in STARTS:
        (folder / f"{name}.json").write_text(tables(lark_of(name)), encoding="utf-8")


def tables(grammar: Lark) -> str:
    """The tables of a grammar as JSON, a line for each state, rule and scanner."""
    data, memo = grammar.memo_serialize([TerminalDef, Rule])
    automaton = data["parser"]["parser"]
    rules = [memo[rule["@"]] for rule in data["rules"]]
    numbers = {rule["@"]: number for number, rule in enumerate(data["rules"])}
    rows = {
        state: {
            automaton["tokens"][token]: ~numbers[target["@"]] if reduces else target
            for token, (reduces, target) in row.items()
        }
        for state, row in automaton["states"].items()
    }
    for end in automaton["end_states"].values():
        rows[end][END] = end
    starts = {start: automaton["start_states"][start] for start in data["options"]["start"]}
    order = {state: number for number, state in enumerate(_states(rows, starts.values()))}

    ignored = sorted(data["parser"]["lexer_conf"]["ignore"])
    terminals = sorted(grammar.terminals, key=_precedence)
    scanners: dict[str, tuple[int, list[Any]]] = {}
    scanner_of = []
    for state in order:
        found = _scanner([each for each in terminals if each.name in rows[state] or each.name in ignored])
        scanner_of.append(scanners.setdefault(json.dumps(found), (len(scanners), found))[0])
    return _lines(
        {
            "starts": {start: order[state] for start, state in starts.items()},
            "rules": list(map(_rule, rules)),
            "rows": [
                {symbol: order[to] if to >= 0 else to for symbol, to in sorted(rows[state].items())} for state in order
            ],
            "scanners": [scanner for _, scanner in scanners.values()],
            "scanner_of": scanner_of,
            "root": _scanner(terminals)[0],
            "ignored": ignored,
            "spelled": {each.name: each.pattern.value for each in terminals if each.pattern.type == "str"},
        }
    )


def _states(rows: Mapping[int, Mapping[str, int]], starts: Iterable[int]) -> list[int]:
    """All states, those nearer to the start first."""
    found = dict.fromkeys(starts)
    todo = list(found)
    for state in todo:
        following = [to for _, to in sorted(rows[state].items()) if to >= 0 and to not in found]
        found |= dict.fromkeys(following)
        todo += dict.fromkeys(following)
    assert found.keys() == rows.keys()
    return todo


def _precedence(terminal: TerminalDef) -> tuple[int, int, int, str]:
    pattern = terminal.pattern
    return -terminal.priority, -pattern.max_width, -len(pattern.value), terminal.name


def _scanner(terminals: Sequence[TerminalDef]) -> list[Any]:
    """The pattern of some terminals, and the words that are told from what they look like by their text."""
    words: dict[str, dict[str, str]] = {}
    inside = set()
    for general in terminals:
        for word in terminals:
            text = word.pattern.value
            if general.pattern.type != "re" or word.pattern.type != "str" or word.priority != general.priority:
                continue
            match = re.match(general.pattern.to_regexp(), text)
            if match and match[0] == text:
                words.setdefault(general.name, {})[text] = word.name
                if word.pattern.flags <= general.pattern.flags:
                    inside.add(word.name)
    groups = (f"(?P<{each.name}>{each.pattern.to_regexp()})" for each in terminals if each.name not in inside)
    return ["|".join(groups), words]


def _rule(rule: Mapping[str, Any]) -> list[Any]:
    options = rule["options"]
    origin, parts = rule["origin"]["name"], rule["expansion"]
    name = rule["alias"] or options["template_source"] or origin
    arguments = list(_arguments(parts, options["empty_indices"]))
    return [origin, len(parts), name, arguments, options["expand1"] and not rule["alias"]]


def _arguments(parts: Sequence[Mapping[str, Any]], left_out: Sequence[bool]) -> Iterator[int | None]:
    """`left_out` has, before a False for each part, a True for each optional one that is not there."""
    gaps = iter(left_out)
    for number, part in enumerate(parts):
        while next(gaps, False):
            yield None
        if part["__type__"] == "NonTerminal":
            yield ~number if part["name"].startswith("_") else number
        elif not part["filter_out"]:
            yield number
    for gap in gaps:
        if gap:
            yield None


def _lines(content: Mapping[str, Any]) -> str:
    fields = []
    for name, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], list | dict):
            text = "[\n" + ",\n".join(map(_line, value)) + "\n]"
        else:
            text = _line(value)
        fields.append(f"{_line(name)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
