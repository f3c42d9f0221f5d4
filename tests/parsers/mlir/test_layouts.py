"""A blank, a line break or a comment between two tokens of a valid text changes nothing that is read of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from shardscope.parsers import parse
from shardscope.parsers.mlir import MlirModule
from shardscope.parsers.mlir.spacing import as_printed, is_unusual

from tests.sweeps import examples

from ..layouts import MLIR, other_layouts
from .agreement import differences
from .conftest import Read

LAYOUTS = 20
"""Of each text."""


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[str]:
    """Short texts of StableHLO and of Shardy."""
    short = [path.read_text() for path in corpus if path.suffix == ".mlir" and path.stat().st_size < 20_000]
    return random.Random(0).sample(short, min(len(short), examples(5, 12)))


@pytest.mark.once
def test_layouts_change_nothing_that_is_read(mlir: Read, texts: list[str], tmp_path: Path) -> None:
    layouts: dict[Path, str] = {}
    for number, text in enumerate(texts):
        for place, layout in enumerate(other_layouts(random.Random(number), text, LAYOUTS, MLIR)):
            layouts[tmp_path / f"{number}.{place}.mlir"] = layout
    for path, layout in layouts.items():
        path.write_text(layout, newline="")
    answers = mlir(layouts)
    compared = 0
    for path, layout in layouts.items():
        if "error" in answers[path]:
            continue  # to MLIR it is no text of its own
        module = parse(layout.encode(), path.name)
        assert isinstance(module, MlirModule)
        compared += 1
        assert not module.problems, layout
        assert list(differences(module, answers[path]["operations"])) == [], layout
    assert compared > 0.7 * len(layouts)


@pytest.mark.once
def test_printed_texts_stay_as_they_are(texts: list[str]) -> None:
    kept = [text for text in texts if not is_unusual(text.encode())]
    assert len(kept) > 0.8 * len(texts)
    assert all(as_printed(text.encode()).split() == text.encode().split() for text in kept)
