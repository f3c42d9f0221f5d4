"""A blank, a line break or a remark between two tokens of a valid text changes nothing that is read of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.hlo.fields import as_printed, bracket_end, without_remarks
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


@pytest.mark.once
def test_values_of_attributes_have_the_blanks_of_the_printer(texts: list[str]) -> None:
    """Printed ones are as they are, and the same again in other layouts of their tokens."""
    modules = [parse_module(Source("t", text.encode())) for text in (*texts, TILED)]
    instructions = [each for module in modules for part in module.computations for each in part.instructions]
    values = {
        value
        for each in instructions
        if each.computation.is_exact
        for key, value in each.attributes.items()
        if key not in ("metadata", "frontend_attributes", "backend_config") and not set("_>'\"") & set(value[1:-1])
    } | {
        "{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}",
        "{{0,1},{2,3}}",
        "{replicated}",
        "{1,0:T(8,128)S(1)}",
    }
    assert [as_printed(text) for text in ("a  b", "a , b", "a\n")] == ["a b", "a, b", "a"]
    chance = random.Random(0)
    for value in sorted(values, key=len)[:300]:
        assert as_printed(value) == value
        tokens = [match[0] for match in HLO.token.finditer(value)]
        for often in (0.1, 0.5, 0.9):
            put = (chance.choice(HLO.between) if chance.random() < often else "" for _ in tokens[1:])
            laid_out = tokens[0] + "".join(between + token for between, token in zip(put, tokens[1:], strict=True))
            assert as_printed(laid_out) == value, laid_out


def test_brackets_by_counting_them() -> None:
    """Of random tokens; a remark that XLA does not print ends the search."""
    chance = random.Random(0)
    kinds = ["{", "[", "(", "}", "]", ")", "a", " ", "/*index=5*/", '"}"', "'{ \\' ('", "\n"]
    closed = 0
    for _ in range(3000):
        tokens = ["{", *chance.choices([*kinds, "/*x*/"], [3, 3, 3, 3, 3, 3, 2, 2, 1, 1, 1, 1, 0.2], k=12)]
        text = "".join(tokens)
        depth, end, found = 0, 3, None
        for token in tokens:
            depth += {**dict.fromkeys("{[(", 1), **dict.fromkeys("}])", -1)}.get(token, 0)
            end += len(token)
            if token == "/*x*/" or not depth:
                found = None if depth else end
                break
        closed += found is not None
        assert bracket_end(f"{{x={text}}}".encode(), 3, 3 + len(text)) == found, text
    assert 500 < closed < 2500


def test_remarks_are_blanks_and_no_part_of_strings() -> None:
    assert without_remarks("a /* b */ c // d\n e") == "a c e"
    for only in ('"/* a */"', "'// a'", "a, b"):
        assert without_remarks(only) == only
    assert without_remarks("a/*x*/b") == "a b"
    assert without_remarks("a//x") == "a "
