"""A blank, a line break or a remark between two tokens of a valid text changes nothing that is read of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.source import Source

from tests.sweeps import examples

from ..layouts import HLO, other_layouts
from .conftest import Read
from .coverage import untold
from .layouts import everything_read
from .test_nested import BRANCHES, IN_A_LINE, REDUCTION, WITHOUT_AN_ENTRY
from .test_properties import valid_module

TILED = """HloModule tiled, entry_computation_layout={(f32[16,128]{1,0:T(8,128)})->f32[128,128]{1,0:T(8,128)S(1)}}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[]{:T(128)} parameter(0)
  %b = f32[]{:T(128)} parameter(1)
  ROOT %add = f32[]{:T(128)} add(%a, %b)
}

ENTRY %main (p: f32[16,128]) -> f32[128,128] {
  %p = f32[16,128]{1,0:T(8,128)} parameter(0)
  %r = f32[16,128]{1,0:T(8,128)S(1)} all-reduce(%p), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%sum
  ROOT %g = f32[128,128]{1,0:T(8,128)S(1)} all-gather(%r), channel_id=2, replica_groups=[1,8]<=[8], dimensions={0}
}
"""
"""As a TPU's compiler prints tiles and memory spaces."""

LAYOUTS = 50
"""Of each text."""


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[str]:
    """Short texts of compilers, of ours, and with computations in instructions."""
    printed = [path.read_text() for path in corpus if path.suffix == ".hlo" and path.stat().st_size < 5000]
    of_compilers = [text for text in printed if text.startswith("HloModule ")]
    made = [valid_module(random.Random(seed)) for seed in range(examples(4, 10))]
    chosen = random.Random(0).sample(of_compilers, examples(10, 32))
    return [*chosen, *made, REDUCTION, IN_A_LINE, BRANCHES, WITHOUT_AN_ENTRY, TILED]


@pytest.mark.once
def test_layouts_change_nothing_that_is_read(xla: Read, texts: list[str], tmp_path: Path) -> None:
    layouts: dict[Path, str] = {}
    for number, text in enumerate(texts):
        for place, layout in enumerate([text, *other_layouts(random.Random(number), text, LAYOUTS, HLO)]):
            layouts[tmp_path / f"{number}.{place}"] = layout
    for path, layout in layouts.items():
        path.write_text(layout, newline="")
    answers = xla(layouts)
    compared = reported = 0
    for number, text in enumerate(texts):
        original = answers[tmp_path / f"{number}.0"]
        expected = everything_read(parse_module(Source("as it was", text.encode())))
        for path in (tmp_path / f"{number}.{place}" for place in range(1, LAYOUTS + 1)):
            if "error" in original or answers[path] != original | {"path": str(path)}:
                continue  # to XLA it is another module, or none
            module = parse_module(Source(path.name, layouts[path].encode()))
            compared += 1
            reported += bool(module.problems)
            assert untold(module) == []
            assert module.problems or everything_read(module) == expected, layouts[path]
    assert compared > examples(700, 1500)
    assert not reported
