"""A blank, a line break or a comment between two tokens of a valid text changes nothing that is read of it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from shardscope.parsers.mlir import parse_module
from shardscope.parsers.mlir.spacing import as_printed, in_printers_layout, is_unusual
from shardscope.parsers.source import Source

from .agreement import differences
from .conftest import Read

TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)|"(?:[^"\\]|\\.)*"|[%@!#^][\w$.\-]+|-?\d[\d.]*(?:e[+\-]?\d+)?|[A-Za-z_][\w$.]*|->|::|.""",
    re.DOTALL,
)
BETWEEN = (
    *(" ", "  ", "\t", "\n", "\r\n", "\n\n", "\n  ", "\n      ", "\n\t"),
    *(" // it's {\n", " //\n  ", "// }\n", " // %a = stablehlo.add %b\n"),
)
LAYOUTS = 20
"""Of each text."""


def other_layouts(chance: random.Random, text: str, count: int) -> list[str]:
    """The text in so many other layouts, in most of which one thing is different, and in some several."""
    tokens = [match[0] for match in TOKEN.finditer(text)]
    found = []
    for _ in range(count):
        changed = tokens.copy()
        for _ in range(chance.choice([1, 1, 1, 2, 6])):
            place = chance.randrange(1, len(tokens))
            kept = "" if tokens[place].isspace() and chance.random() < 0.5 else tokens[place]
            changed[place] = chance.choice(BETWEEN) + kept
        found.append("".join(changed))
    return found


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[str]:
    """Short texts of StableHLO and of Shardy."""
    short = [path.read_text() for path in corpus if path.suffix == ".mlir" and path.stat().st_size < 20_000]
    return random.Random(0).sample(short, min(len(short), 12))


@pytest.mark.once
def test_layouts_change_nothing_that_is_read(mlir: Read, texts: list[str], tmp_path: Path) -> None:
    layouts: dict[Path, str] = {}
    for number, text in enumerate(texts):
        for place, layout in enumerate(other_layouts(random.Random(number), text, LAYOUTS)):
            layouts[tmp_path / f"{number}.{place}.mlir"] = layout
    for path, layout in layouts.items():
        path.write_text(layout, newline="")
    answers = mlir(layouts)
    compared = 0
    for path, layout in layouts.items():
        if "error" in answers[path]:
            continue  # to MLIR it is no text of its own
        module = parse_module(in_printers_layout(Source(path.name, layout.encode())))
        compared += 1
        assert not module.problems, layout
        assert list(differences(module, answers[path]["operations"])) == [], layout
    assert compared > 0.8 * len(layouts)


@pytest.mark.once
def test_printed_texts_stay_as_they_are(texts: list[str]) -> None:
    kept = [text for text in texts if not is_unusual(text.encode())]
    assert len(kept) > 0.8 * len(texts)
    assert all(as_printed(text.encode()).split() == text.encode().split() for text in kept)
