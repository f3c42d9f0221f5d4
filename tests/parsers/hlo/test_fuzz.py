"""Damaged texts: nothing but ParseError comes out, nothing gets lost, and the work grows as the text does.

What was found this way is in `test_broken.py`, as short texts.
"""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.hlo.problems import MAX_PROBLEMS
from shardscope.parsers.source import Source

from tests.sweeps import sampled

from ..damage import SCRAPS, SEEDS, damaged_line, damaged_texts, is_linear, portable, repeated
from .coverage import untold
from .test_nested import with_nested

pytestmark = pytest.mark.once


def look_at_everything(module: HloModule) -> None:
    """Ask for all there is, and see that all accounts of it agree."""
    assert all(problem.source is module.source for problem in module.problems)
    assert all(str(problem).startswith(module.source.name) for problem in module.problems[:99])
    assert module.entry is None or module.entry in module.computations
    instructions = []
    for computation in module.computations:
        instructions += computation.instructions
        assert (computation.root is None) == (not computation.instructions)
        assert len(computation.parameters) <= len(computation.instructions)
        assert computation.attributes is not None
    for each in instructions:
        assert f"{each.name} {each.opcode} {each.type} {each.operands} {each.literal} {each.metadata} {each.called}"
        assert f"{each.frames} {each.frontend_attributes} {each.backend_config}"
        assert each.name in each.text
        for meaning in ("replica_groups", "source_target_pairs", "sharding"):
            with suppress(ParseError):
                getattr(each, meaning)
    assert list(module.rows()) == [(each.name, each.type_text, each.opcode) for each in instructions]
    wanted = {"all-reduce", "parameter", "add", "tuple", "fusion"}
    assert [each.span for each in module.with_opcode(wanted)] == [e.span for e in instructions if e.opcode in wanted]
    assert sum(module.opcode_counts().values()) == len(instructions)
    for each in instructions[:99]:
        assert module.instruction_at(each.span.start).span == each.span
    if len(module.problems) <= MAX_PROBLEMS:
        assert untold(module) == []


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[bytes]:
    """Short texts of the corpus, printed in all ways."""
    found = portable(path for path in sorted(corpus) if path.suffix != ".mlir")
    return [text for text in found if text.startswith(b"HloModule ") and len(text) < 9000][::7]


@pytest.fixture(scope="module")
def nested(texts: list[bytes]) -> list[bytes]:
    """Some of them with computations written in the instructions that call them."""
    written = ((text, with_nested(text.decode()).encode()) for text in texts)
    return [nested for text, nested in written if nested != text]


@pytest.mark.parametrize("first", range(0, SEEDS, 500))
def test_damaged_texts(texts: list[bytes], nested: list[bytes], first: int) -> None:
    for source in damaged_texts(texts + nested[::3], first):
        try:
            module = parse_module(source)
        except ParseError:
            continue
        look_at_everything(module)


@pytest.mark.parametrize("seed", range(200))
def test_damage_to_a_line_leaves_the_other_lines(texts: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice(texts)
    module = parse_module(Source("whole", text))
    instructions = [each for computation in module.computations for each in computation.instructions]
    # What the beginning of a remark swallows is a remark to XLA too.
    chosen = chance.choice([each for each in instructions if "/*" not in each.text]).span
    scraps = [scrap for scrap in SCRAPS if b"\n" not in scrap and scrap != b"/*"]
    broken = parse_module(damaged_line(chance, text, chosen, scraps))
    left = {each.text for computation in broken.computations for each in computation.instructions}
    assert {each.text for each in instructions if each.span != chosen} <= left


@pytest.mark.parametrize("seed", range(200))
def test_damage_to_a_line_leaves_the_other_lines_of_nested_computations(nested: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice(nested)
    instructions = [each for part in parse_module(Source("whole", text)).computations for each in part.instructions]
    chosen = chance.choice([each for each in instructions if "\n" not in each.text and "/*" not in each.text])
    scraps = [scrap for scrap in SCRAPS if b"\n" not in scrap and scrap != b"/*"]
    broken = parse_module(damaged_line(chance, text, chosen.span, scraps))
    assert {each.name for each in instructions if each is not chosen} <= set(broken.rows().names)


HEAD = "HloModule m\n\nENTRY %e (p: f32[]) -> f32[] {\n"
LONG = {
    "open braces": [f"{HEAD}  %x = f32[] add(%p), a={each}\n}}\n" for each in repeated("{")],
    "closed braces": [f"{HEAD}  %x = f32[] add(%p), a={each}{each.replace('{', '}')}\n}}\n" for each in repeated("{")],
    "open parentheses": [f"{HEAD}  %x = f32[] add{each}\n}}\n" for each in repeated("(")],
    "types in types": [f"{HEAD}  %x = {each} tuple(%p)\n}}\n" for each in repeated("(")],
    "a tuple of types": [f"{HEAD}  %x = ({each}f32[]) tuple(%p)\n}}\n" for each in repeated("f32[8]{0}, ")],
    "blanks": [f"{HEAD}  %x = f32[] add(%p){each}\n}}\n" for each in repeated(" ")],
    "lines of blanks": [HEAD + each for each in repeated(" \n")],
    "quotes": [f"{HEAD}  %x = f32[] add(%p), a={each}\n}}\n" for each in repeated('"')],
    "escapes": [f'{HEAD}  %x = f32[] add(%p), a="{each}\n}}\n' for each in repeated("\\")],
    "escaped quotes": [f"{HEAD}  %x = f32[] add(%p), a={each}\n}}\n" for each in repeated('\\"')],
    "a long name": [f"{HEAD}  %{each} = f32[] add(%p)\n}}\n" for each in repeated("a")],
    "a long line": [HEAD + each for each in repeated("a")],
    "words": [HEAD + each for each in repeated("a b ")],
    "beginnings of rows": [HEAD + each for each in repeated("  %x = (\n")],
    "rows without an end": [HEAD + each for each in repeated("  %x = f32[] add(\n")],
    "rows in one line": [HEAD + each for each in repeated("x = f32[] add(p) ")],
    "remarks": [HEAD + each for each in repeated("/*")],
    "remarks before": [each + HEAD for each in repeated("/* ")],
    "remarks in a row": [f"{HEAD}  %x = f32[] add(%p), a={{{each}\n" for each in repeated("/*")],
    "slashes": [HEAD + each for each in repeated("/")],
    "headers": [HEAD + each for each in repeated("%f (p: f32[]) -> f32[] {\n")],
    "headers in one line": [f"HloModule m {each}" for each in repeated("f {} ")],
    "half headers": ["HloModule m\n" + each for each in repeated("f (")],
    "half headers with quotes": ["HloModule m\n" + each for each in repeated("f ('\n")],
    "ends": [HEAD + each for each in repeated("}\n")],
    "keys": [f"{HEAD}  %x = f32[] add(%p){each}\n}}\n" for each in repeated(", a=[")],
    "keys with braces": [f"{HEAD}  %x = f32[] add(%p){each}\n}}\n" for each in repeated(", a={")],
    "values": [f"{HEAD}  %x = f32[] add(%p){each}\n}}\n" for each in repeated(", a=1")],
    "fields": [f"{HEAD}  %x = f32[] add(%p), metadata={{{each}}}\n}}\n" for each in repeated("a")],
    "operands": [f"{HEAD}  %x = f32[] add({each})\n}}\n" for each in repeated("aaaa ")],
    "a long constant": [f"{HEAD}  %x = f32[9]{{0}} constant({{{each}1}})\n}}\n" for each in repeated("1, ")],
    "attributes of the module": [f"HloModule m{each}\n" for each in repeated(", a={{}")],
    "tables": [f"HloModule m\n\nFileNames\n{each}" for each in repeated('1 "')],
    "junk": ["HloModule m\n" + each for each in repeated("\x00\n")],
    "groups": [f"{HEAD}  %x = f32[] add(%p), replica_groups={{{each}\n}}\n" for each in repeated("{0} ")],
    "pairs": [f"{HEAD}  %x = f32[] add(%p), source_target_pairs={{{each}}}\n}}\n" for each in repeated("{0,1}  ")],
    "shardings": [f"{HEAD}  %x = f32[] add(%p), sharding={{{each}}}\n}}\n" for each in repeated("{replicated},")],
    "nested computations": [HEAD + each for each in repeated("  x = f32[] call(p), to_apply={\n")],
    "nested computations in one line": [HEAD + each for each in repeated("x = f32[] call(p), to_apply={ ")],
    "nested computations in a list": [
        HEAD + each for each in repeated("x = f32[] call(p), calls={{y = f32[] iota()},")
    ],
    "indented further and further": [
        HEAD + "".join(f"{' ' * column}x = f32[] call(p), calls={{\n" for column in range(len(each) // 40))
        for each in repeated(" ")
    ],
    "blanks in groups": [f"{HEAD}  %x = f32[] add(%p), replica_groups={{{each}\n}}\n" for each in repeated(" ")],
}


@pytest.mark.parametrize("texts", sampled(LONG.values(), 14), ids=LONG)
def test_work_grows_with_the_length(texts: list[str]) -> None:
    assert is_linear(look_at, *texts)


def look_at(text: str) -> None:
    with suppress(ParseError):
        look_at_everything(parse_module(Source("long", text.encode())))
