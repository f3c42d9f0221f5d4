"""Other layouts of valid texts: blanks, line breaks and remarks between any two tokens, and lines put together.

And what is read of a module, written so that layouts make no difference.
"""

from __future__ import annotations

import random
import re
from typing import Any

from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule

REMARK = r"/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*"
TOKEN = re.compile(
    rf"""(?P<space>(?:\s|{REMARK})+)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|%?[A-Za-z_][\w.\-]*|-?[\d.]+|->|<=|.""",
    re.DOTALL,
)
"""What XLA's lexer takes for one token, and what stands between two."""

BETWEEN = (
    *(" ", "  ", "\t", "\n", "\r\n", "\n\n", "\n  ", "\n      ", "\n\t"),
    *("/* a remark */", " /*x*/ ", "/*index=5*/", "/* %a = f32[] add(%b), c={ */", "/*\n  %a = f32[] parameter(0)\n*/"),
    *(" // it's {\n", " //\n  ", "// }\n", "/* ' */\n  ", '/* " } */'),
)


def other_layouts(chance: random.Random, text: str, count: int) -> list[str]:
    """The text in so many other layouts, in most of which one thing is different, and in some several."""
    tokens = [match[0] for match in TOKEN.finditer(text)]
    found = []
    for _ in range(count):
        changed = tokens.copy()
        for _ in range(chance.choice([1, 1, 1, 2, 6])):
            place = chance.randrange(1, len(tokens))
            if tokens[place].isspace() and chance.random() < 0.5:
                changed[place] = chance.choice(BETWEEN)
            elif tokens[place] != "=" or tokens[place - 1].isspace():
                changed[place] = chance.choice(BETWEEN) + changed[place]
        found.append("".join(changed))
    return found


def without_layout(text: str) -> str:
    """The tokens of a text."""
    return " ".join(match[0] for match in TOKEN.finditer(text) if not match["space"])


def everything_read(module: HloModule) -> dict[str, Any]:
    """Names, types, operands, attributes, callees and groups of all instructions, by computation."""
    return {
        computation.name: [
            computation.is_entry,
            {key: without_layout(value) for key, value in computation.attributes.items()},
            *(
                (
                    each.name,
                    each.is_root,
                    each.opcode,
                    without_layout(str(each.type)),
                    each.references,
                    None if each.literal is None else without_layout(each.literal),
                    {key: without_layout(value) for key, value in each.attributes.items()},
                    each.called,
                    {name: meaning(each, name) for name in ("replica_groups", "source_target_pairs", "sharding")},
                    each.metadata,
                    each.frontend_attributes,
                )
                for each in computation.instructions
            ),
        ]
        for computation in module.computations
    } | {"": {key: without_layout(value) for key, value in module.attributes.items()}}


def meaning(instruction: object, name: str) -> object:
    try:
        return getattr(instruction, name)
    except ParseError as error:
        return str(error.problem.message)
