"""Other layouts of valid texts: what may stand between any two tokens, there or not, once or everywhere."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

_BLANKS = (" ", "  ", "\t", "\n", "\r\n", "\n\n", "\n  ", "\n      ", "\n\t", " \t ", "\n \n", "\r")
_LINE_REMARKS = (" // it's {\n", " //\n  ", "// }\n", "//x\r\n\t")


@dataclass(frozen=True)
class Lexer:
    """What a language's lexer takes for one token, with the group `space` between two, and what may stand there."""

    token: re.Pattern[str]
    between: tuple[str, ...]


HLO_REMARK = r"/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*"
HLO = Lexer(
    re.compile(
        rf"""(?P<space>(?:\s|{HLO_REMARK})+)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|%?[A-Za-z_][\w.\-]*|-?[\d.]+|->|<=|.""",
        re.DOTALL,
    ),
    (
        *_BLANKS,
        *_LINE_REMARKS,
        *("/* a remark */", " /*x*/ ", "/*index=5*/", "/* %a = f32[] add(%b), c={ */", "/**/", "/* ***/"),
        *("/*\n  %a = f32[] parameter(0)\n*/", "/* ' */\n  ", '/* " } */', "// /*\n", "/* // */"),
    ),
)
MLIR = Lexer(
    re.compile(
        r"""(?P<space>(?:\s|//[^\n]*)+)|"(?:[^"\\]|\\.)*"|[%@!#^][\w$.\-]+|-?\d[\d.]*(?:e[+\-]?\d+)?|[A-Za-z_][\w$.]*|->|::|.""",
        re.DOTALL,
    ),
    (*_BLANKS, *_LINE_REMARKS, " // %a = stablehlo.add %b\n", '// "\n'),
)


def other_layouts(chance: random.Random, text: str, count: int, lexer: Lexer) -> list[str]:
    """The text in so many other layouts, in most of which few things are different, and in every fifth all are."""
    tokens = [match[0] for match in lexer.token.finditer(text)]
    layouts = []
    for number in range(count):
        if number % 5 == 4:
            layouts.append(_everywhere(chance, text, tokens, lexer))
            continue
        changed = tokens.copy()
        for _ in range(chance.choice([1, 1, 1, 2, 6])):
            place = chance.randrange(1, len(tokens))
            changed[place] = _changed(chance, tokens, place, lexer)
        layouts.append("".join(changed))
    return layouts


def _everywhere(chance: random.Random, text: str, tokens: list[str], lexer: Lexer) -> str:
    """The text, with the same done at most of its places."""
    if chance.random() < 0.2:
        return text.replace("\n", "\r\n")
    often, put = chance.choice([0.1, 0.5, 0.9]), (chance.choice(lexer.between),)
    changed = tokens.copy()
    for place in range(1, len(tokens)):
        if chance.random() < often:
            changed[place] = _changed(chance, tokens, place, Lexer(lexer.token, put))
    return "".join(changed)


def _changed(chance: random.Random, tokens: list[str], place: int, lexer: Lexer) -> str:
    """A token with something before it, or what stands between two with something else, or nothing."""
    token = tokens[place]
    if token.isspace():
        kind = chance.random()
        return "" if kind < 0.25 and len(token) == 1 else chance.choice(lexer.between) + token * (kind < 0.5)
    if token == "=" and not tokens[place - 1].isspace():
        # In some places XLA's lexer takes a key together with its equals sign.
        return token if chance.random() < 0.8 else chance.choice(lexer.between) + token
    return chance.choice(lexer.between) + token


def without_layout(text: str, lexer: Lexer = HLO) -> str:
    """The tokens of a text."""
    return " ".join(match[0] for match in lexer.token.finditer(text) if not match["space"])
