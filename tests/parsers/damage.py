"""Damage to texts, and how much work it is to read them."""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from shardscope.parsers.source import Source, Span

from tests.sweeps import examples

SEEDS = int(os.environ.get("SHARDSCOPE_FUZZ", examples(500, 1000)))
"""How many texts of each language are damaged."""

SCRAPS = (
    *(b"{", b"}", b"(", b")", b"[", b"]", b'"', b"'", b"\\", b",", b"=", b" = ", b"%", b"#", b" ", b"\t", b"\r\n"),
    *(b"\n", b"\n\n", b"\n  ", b"\n}", b"/*", b"*/", b"//", b"\x00", b"\xff\xfe", "é".encode()),
    *(b"ENTRY", b"ROOT ", b"HloModule", b"mesh[", b"<=", b"{{{{{{{{", b"}}}}}}}}", b"(((((((("),
)


_FOLDER = re.compile(rb'"(?:/[^"/\n]+)+/(?=[^"/\n]+")')


def portable(paths: Iterable[Path]) -> list[bytes]:
    """The texts without the folders of source files: a seed does the same damage to them in any checkout."""
    return [_FOLDER.sub(b'"/', path.read_bytes()) for path in paths]


def damaged(chance: random.Random, text: bytes, other: bytes) -> bytes:
    """A text with something cut out, cut off, put in, put elsewhere or repeated."""
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice([0, 1, 1, 2, 5, 20, 100, 1000]))
    before, middle, after = text[:start], text[start:end], text[end:]
    match chance.randrange(9):
        case 0:
            return before + after
        case 1:
            return before
        case 2:
            return middle + after
        case 3:
            return before + chance.choice(SCRAPS) + after
        case 4:
            return before + chance.randbytes(chance.randrange(1, 9)) + after
        case 5:
            splice = chance.randrange(len(other) + 1)
            return before + other[splice : splice + chance.randrange(2000)] + after
        case 6:
            return before + middle * chance.randrange(2, 5) + after
        case 7:
            return before + chance.choice(SCRAPS) * chance.randrange(1, 300) + middle + after
        case _:
            moved = chance.randrange(len(text) + 1)
            return before + text[moved : moved + 500] + middle + after


def damaged_texts(texts: Sequence[bytes], first: int) -> Iterator[Source]:
    """500 of these texts, damaged once or several times, each by its own seed; the first seed is `first`."""
    for seed in range(first, first + 500):
        chance = random.Random(seed)
        text, other = chance.choice(texts), chance.choice(texts)
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            text = damaged(chance, text, other)
        yield Source(f"seed {seed}", text)


def damaged_line(chance: random.Random, text: bytes, line: Span, scraps: Sequence[bytes]) -> Source:
    """The text with a line cut off somewhere, or with one of these scraps in it or at its end."""
    written = text[line.start : line.end]
    place = chance.randrange(len(written))
    scrap = chance.choice(scraps)
    before, after = written[:place], written[place:]
    changed = chance.choice([before, before + scrap + after, before + scrap])
    return Source("broken", text[: line.start] + changed + text[line.end :])


def repeated(pattern: str, times_shorter: int = 1) -> list[str]:
    """Texts of about 1 kB, 2 kB, 8 kB and 20 kB, or so much shorter."""
    return [pattern * (size // times_shorter // len(pattern)) for size in (1_000, 2_000, 8_000, 20_000)]


def calls(function: Callable[[], object]) -> int:
    """How many functions are called, in Python and in C, while one runs."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def is_linear(read: Callable[[str], object], first: str, short: str, long: str, longest: str) -> bool:
    """Whether four times the text is at most five times the work, counted in calls.

    What happens within a call, in a search for a pattern, is not counted: with the square of the length the longest
    text would take long.
    """
    read(first)  # imports, and builds grammars
    work = [calls(lambda text=text: read(text)) for text in (short, long)]
    read(longest)
    return work[1] < 5 * work[0] + 1000
