"""The tables of a grammar: what Lark makes of a `*.lark` file, as plain data that needs no Lark to be read.

They are built once and kept as JSON in a cache of the user's, in a directory that only the user can write to; without
such a directory they are built anew in each process. To import Lark takes longer than to list the collectives of most
programs.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

FOLDER = os.path.dirname(__file__)
END = "$END"
"""The terminal behind the last one of a text."""

_IMPORT = re.compile(r"^%import \.(\w+)", re.MULTILINE)
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """One alternative of a rule: `size` parts that are on the stack become one of the nonterminal `origin`.

    Its action is the one of that `name`. Its arguments are, in order, part number n (n), all that part number n was
    reduced to (~n), or nothing, for what was left out (None). With `unwraps`, one argument alone is its own meaning.
    """

    origin: str
    size: int
    name: str
    arguments: Sequence[int | None]
    unwraps: bool


@dataclass(frozen=True, slots=True)
class Scanner:
    """A pattern with one named group for each terminal that can come, and words that are terminals of their own.

    `words` has, by the terminal that the pattern takes them for, the names of their own by their texts.
    """

    pattern: str
    words: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Tables:
    """The LALR(1) automaton of a grammar and its scanners.

    `rows` has for each state where a terminal or nonterminal leads: to a state (n), or to a reduction by a rule (~n).
    `starts` has the first state of each rule that a text can be, `scanner_of` the number of each state's scanner,
    `root` a pattern of all terminals, `ignored` those that are nothing, and `spelled` the texts of fixed ones.
    """

    rows: Sequence[Mapping[str, int]]
    rules: Sequence[Rule]
    starts: Mapping[str, int]
    scanners: Sequence[Scanner]
    scanner_of: Sequence[int]
    root: str
    ignored: Sequence[str]
    spelled: Mapping[str, str]


def load_tables(file: str, starts: Sequence[str]) -> Tables:
    """The tables of a grammar file in this folder, whose texts are one of the rules `starts`."""
    sources = _sources(file)
    folder = _cache_directory()
    if folder is None:
        return _built(file, starts)
    stem = "-".join((os.path.splitext(file)[0], *starts))
    path = os.path.join(folder, f"{stem}.{_FORMAT}.json")
    tables = _kept(path, sources)
    if tables is None:
        tables = _built(file, starts)
        with suppress(OSError):
            _keep(path, sources, tables)
    return tables


def _sources(file: str) -> dict[str, str]:
    """The text of a grammar and of those that it imports, by file."""
    with open(os.path.join(FOLDER, file), encoding="utf-8") as lines:
        text = lines.read()
    found = {file: text}
    for imported in _IMPORT.findall(text):
        found |= _sources(f"{imported}.lark")
    return found


def _kept(path: str, sources: Mapping[str, str]) -> Tables | None:
    """The tables in a file of the cache, if they are of these grammars."""
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["sources"] != sources:
            return None
        tables = kept["tables"]
        tables["rules"] = [Rule(**rule) for rule in tables["rules"]]
        tables["scanners"] = [Scanner(**scanner) for scanner in tables["scanners"]]
        return Tables(**tables)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _keep(path: str, sources: Mapping[str, str], tables: Tables) -> None:
    import tempfile

    # Under its own name at once whole: other processes may be reading it.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        file = os.path.join(folder, "tables")
        with open(file, "w", encoding="utf-8") as lines:
            json.dump({"sources": sources, "tables": asdict(tables)}, lines)
        os.replace(file, path)


def _cache_directory() -> str | None:
    """A directory for tables, which only this user can write to; None where there is none.

    Who can change the tables changes what a text is taken for.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(base, "shardscope", "grammars")
    if not os.path.isabs(path) or not hasattr(os, "geteuid"):
        return None
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.lstat(path)
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return path if private else None


def lark_of(file: str, starts: Sequence[str], **options: Any) -> Lark:
    """Lark's own parser of a grammar file in this folder; `options` are Lark's."""
    import lark

    path = os.path.join(FOLDER, file)
    with open(path, encoding="utf-8") as lines:
        return lark.Lark(lines, parser="lalr", start=list(starts), source_path=path, **options)


def _built(file: str, starts: Sequence[str]) -> Tables:
    """What Lark makes of a grammar."""
    from lark.parsers.lalr_analysis import Shift

    grammar = lark_of(file, starts)
    # What Lark's own stand-alone parsers are made of; it has no other name for it.
    machine: Any = grammar.parser
    table, lexer = machine.parser._parse_table, machine.lexer
    numbers = {rule: number for number, rule in enumerate(grammar.rules)}
    rows = [
        {
            symbol: target if action is Shift else ~numbers[target]
            for symbol, (action, target) in table.states[state].items()
        }
        for state in range(len(table.states))
    ]
    for end in table.end_states.values():
        rows[end][END] = end
    scanners = {id(each): _scanner(each) for each in lexer.lexers.values()}
    order = {key: number for number, key in enumerate(scanners)}
    return Tables(
        rows,
        list(map(_rule, grammar.rules)),
        dict(table.start_states),
        list(scanners.values()),
        [order[id(lexer.lexers[state])] for state in range(len(rows))],
        _scanner(lexer.root_lexer).pattern,
        sorted(lexer.root_lexer.ignore_types),
        {each.name: each.pattern.value for each in grammar.terminals if each.pattern.type == "str"},
    )


def _scanner(lexer: Any) -> Scanner:
    pattern = "|".join(part.pattern for part in lexer.scanner._mres)
    # A word that the pattern of another terminal takes in is told from it by its text.
    words = {
        name: {each.pattern.value: each.name for each in callback.scanner.terminals}
        for name, callback in lexer.callback.items()
    }
    return Scanner(pattern, words)


def _rule(rule: Any) -> Rule:
    alias = rule.alias or rule.options.template_source
    arguments = list(_arguments(rule.expansion, rule.options.empty_indices))
    unwraps = bool(rule.options.expand1) and not rule.alias
    return Rule(rule.origin.name, len(rule.expansion), alias or rule.origin.name, arguments, unwraps)


def _arguments(parts: Iterable[Any], left_out: Sequence[bool]) -> Iterator[int | None]:
    """`left_out` has, before a False for each part, a True for each optional one that is not there."""
    gaps = iter(left_out or ())
    for number, part in enumerate(parts):
        while next(gaps, False):
            yield None
        if not (part.is_term and part.filter_out):
            yield number if part.is_term or not part.name.startswith("_") else ~number
    for gap in gaps:
        if gap:
            yield None
