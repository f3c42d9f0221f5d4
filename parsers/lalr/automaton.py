"""The tables of a grammar: what Lark makes of a `*.lark` file, as plain data that is read without Lark.

`make grammars` writes them (`tools/grammars.py`); they are package data. Importing Lark and building tables would take
longer than listing the collectives of most programs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

from ..errors import ShardscopeError
from ..record import Record

FOLDER = os.path.join(os.path.dirname(__file__), "tables")
END = "$END"
"""The terminal behind the last one of a text."""


class Rule(Record, frozen=True):
    """One alternative of a rule: `size` parts that are on the stack become one of the nonterminal `origin`.

    Its action is the one of that `name`. Its arguments are, in order, part number n (n), all that part number n was
    reduced to (~n), or nothing, for what was left out (None). With `unwraps`, one argument alone is its own meaning.
    """

    origin: str
    size: int
    name: str
    arguments: Sequence[int | None]
    unwraps: bool


class Scanner(Record, frozen=True):
    """A pattern with one named group for each terminal that can come, and words that are terminals of their own.

    `words` has, by the terminal that the pattern takes them for, the names of their own by their texts.
    """

    pattern: str
    words: Mapping[str, Mapping[str, str]]


class Tables(Record, frozen=True):
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


def load_tables(grammar: str) -> Tables:
    """The tables of a grammar, by its name.

    Raises:
        ShardscopeError: the installation lacks them, or the file is damaged.
    """
    path = os.path.join(FOLDER, f"{grammar}.json")
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        content["rules"] = [Rule(*rule) for rule in content["rules"]]
        content["scanners"] = [Scanner(*scanner) for scanner in content["scanners"]]
        return Tables(**content)
    except (OSError, ValueError, TypeError, KeyError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ShardscopeError(f"cannot read the grammar tables {path} ({why}); reinstall shardscope") from None
