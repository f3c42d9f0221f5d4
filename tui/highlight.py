"""What the words in a line of code are. Lines are looked at one by one, as they come into view.

A highlighter takes the number of a line, from 0, and its text, and gives the tokens in it that stand out. Of a line
that is too long to be looked at whole it gets a piece, with the number -1.
"""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Callable, Iterable

from ..inspector.capture.model import Dialect
from ..inspector.catalog.spellings import HLO_OPCODES, PRIMITIVES, STABLEHLO_OPS
from ..parsers.source import Source

Token = tuple[int, int, str]
"""First character, the one after the last, and the kind: one of `KINDS`."""

KINDS = ("aside", "string", "value", "type", "collective", "operation", "keyword", "groups")

Highlighter = Callable[[int, str], list[Token]]

LARGEST = 1 << 20
"""Bytes; a Python file larger than that stays plain."""


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


_STRING = r'(?P<string>"(?:[^"\\]|\\.)*+")'

_HLO = re.compile(
    rf"""(?P<aside>\b(?:metadata|backend_config)=\{{(?:[^{{}}"]|"(?:[^"\\]|\\.)*+"|\{{[^{{}}]*+\}})*+\}}|/\*.*?\*/|//.*)
    |{_STRING}
    |(?P<value>%[\w.\-]+)
    |(?P<type>\b(?:pred|token|opaque|bf16|[sufc]\d+\w*)\[[^\]]*+\](?:\{{[^}}]*+\}})?)
    |(?P<collective>\b(?:{_alternatives(HLO_OPCODES)})(?:-start|-done)?(?=\())
    |(?P<operation>(?<=\ )[a-z][a-z0-9\-]*+(?=\())
    |(?P<keyword>\b(?:HloModule|ENTRY|ROOT)\b)
    |(?P<groups>\b(?:replica_groups|source_target_pairs|sharding)(?==))""",
    re.VERBOSE,
)

_MLIR = re.compile(
    rf"""(?P<aside>\bloc\((?:[^()"]|"[^"]*+"|\((?:[^()]|\([^()]*+\))*+\))*+\)|//.*|^\#loc.*)
    |(?P<collective>"?(?:{_alternatives(STABLEHLO_OPS)})\b"?)
    |(?P<operation>"?\b(?:stablehlo|sdy|func|chlo|mhlo|mpmd|arith|shape|builtin)\.[\w.]++"?(?!\s*=)|\bcall\b|\breturn\b)
    |{_STRING}
    |(?P<value>%[\w\#:]+)
    |(?P<type>\btensor<[^<>]*+>)
    |(?P<keyword>\b(?:module|func|public|private|attributes)\b)
    |(?P<groups>\b(?:replica_groups|source_target_pairs|sdy\.sharding|in_shardings|out_shardings)\b)""",
    re.VERBOSE,
)

_JAXPR = re.compile(
    rf"""(?P<groups>(?<=\])\{{[VURvur]:[^}}]*+\}}|\b(?:axes|axis_name|in_specs|out_specs|perm)(?==))
    |(?P<type>\b(?:bool|bf16|key<\w+>|[iufc]\d+\w*)\[[^\]]*+\])
    |(?P<collective>(?<==\ )(?:{_alternatives(PRIMITIVES)})\b)
    |(?P<operation>(?<==\ )[a-z_]\w*+)
    |(?P<keyword>\b(?:lambda|let|in)\b)
    |(?P<aside>\bjaxpr=|\bcall_jaxpr=)""",
    re.VERBOSE,
)


def of_dialect(dialect: Dialect) -> Highlighter:
    """The highlighter for the texts of a stage."""
    pattern = {"hlo": _HLO, "mlir": _MLIR, "jaxpr": _JAXPR}[dialect]
    return lambda line, text: [(m.start(), m.end(), m.lastgroup or "") for m in pattern.finditer(text)]


def plain(line: int, text: str) -> list[Token]:
    """Nothing stands out."""
    return []


def of_python(source: Source) -> Highlighter:
    """The highlighter for one Python file. What comes after an error in it stays plain."""
    tokens: dict[int, list[Token]] = {}
    if len(source.data) <= LARGEST:
        try:
            for token in tokenize.generate_tokens(io.StringIO(source.text()).readline):
                _add(token, tokens)
        except (tokenize.TokenError, SyntaxError):
            pass
    return lambda line, text: tokens.get(line, [])


def _add(token: tokenize.TokenInfo, tokens: dict[int, list[Token]]) -> None:
    kind = _python_kind(token)
    (first, start), (last, end) = token.start, token.end
    if kind is not None:
        for line in range(first, last + 1):
            stop = end if line == last else 1 << 30
            tokens.setdefault(line - 1, []).append((start if line == first else 0, stop, kind))


def _python_kind(token: tokenize.TokenInfo) -> str | None:
    match token.type:
        case tokenize.COMMENT:
            return "aside"
        case tokenize.STRING:
            return "string"
        case tokenize.NAME if keyword.iskeyword(token.string):
            return "keyword"
        case tokenize.NAME if token.string in PRIMITIVES or token.string in ("pmean", "with_sharding_constraint"):
            return "collective"
        case _ if tokenize.tok_name[token.type].startswith("FSTRING"):
            return "string"
        case _:
            return None
