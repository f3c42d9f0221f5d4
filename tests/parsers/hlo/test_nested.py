"""Computations that are written inside of the instructions that call them."""

from __future__ import annotations

import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from shardscope.parsers.hlo import HloModule, Instruction, parse_module
from shardscope.parsers.source import Source

from ..conftest import read_in_cpp
from .agreement import differences, groups, printed
from .conftest import Read
from .coverage import untold

pytestmark = pytest.mark.once

REDUCTION = """\
HloModule m

ENTRY e {
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  r = f32[] reduce(p, z), to_apply= /* here: } " */ { // it's {
    a = f32[] parameter(0), metadata={op_name="}{"}
    b = f32[] parameter(1) /* } */
    // ' }
    ROOT s = f32[] add(a, b)
  }, dimensions={0}
  ROOT n = f32[] negate(r)
}
"""
IN_A_LINE = """\
HloModule m

%neg (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  ROOT %y = f32[] negate(%x)
}

ENTRY %e (p: f32[4]) -> f32[] {
  %p = f32[4]{0} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply={a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b)}
}
"""  # noqa: E501
BRANCHES = """\
HloModule m
_ { o = f32[4] parameter(0) ROOT k = f32[4] negate(o) }
ENTRY e {
  p = f32[4] parameter(0)
  i = s32[] parameter(1)
  ROOT r = f32[4] conditional(i, p, p, p), branch_computations={
    { q = f32[4] parameter(0)
      ROOT n = f32[4] negate(q) }, _, {
    v = f32[4] parameter(0)
    ROOT w = f32[4] exponential(v)
    }
  }
}
"""
WITHOUT_AN_ENTRY = """\
HloModule m
f {
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), to_apply={
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  }, dimensions={0}
}
"""


def in_each_other(depth: int) -> str:
    """Calls in calls, in one line."""
    opened = "".join(
        f"p{level} = f32[] parameter(0) ROOT c{level} = f32[] call(p{level}), to_apply={{ " for level in range(depth)
    )
    return f"HloModule m\nENTRY e {{ {opened} ROOT x = f32[] parameter(0) {'}' * depth} }}\n"


def read(text: str) -> HloModule:
    return parse_module(Source("t", text.encode()))


def with_nested(text: str) -> str:
    """Printed text with each computation that one instruction calls written in there."""
    for name in map(re.escape, re.findall(r"^%(\S+) \(", text, re.MULTILINE)):
        computation = re.search(rf"^%{name} .* (\{{\n(?:.*\n)*?\}}).*\n\n?", text, re.MULTILINE)
        call = rf"(to_apply|calls|body|condition)=%{name}(?![\w.\-])"
        if len(re.findall(call, text)) == 1 and len(re.findall(rf"%{name}(?![\w.\-])", text)) == 2:
            body = computation[1].replace("\n", "\n  ")
            text = re.sub(call, lambda key, body=body: f"{key[1]}={body}", text.replace(computation[0], ""))
    return text


@pytest.mark.parametrize("text", [REDUCTION, IN_A_LINE, BRANCHES, WITHOUT_AN_ENTRY, in_each_other(40)])
def test_they_are_to_xla_what_they_are_to_us(xla: Read, tmp_path: Path, text: str) -> None:
    path = tmp_path / "nested.hlo"
    path.write_text(text)
    (answer,) = xla([path]).values()
    assert list(differences(read(text), answer["computations"])) == []
    assert not read(text).problems
    assert read(text).entry.name == answer["computations"][-1][0]


@pytest.mark.parametrize("column", range(5))
def test_a_surplus_brace_before_one_costs_no_instruction(column: int) -> None:
    begin = BRANCHES.index("branch_computations={") + len("branch_computations={\n")
    damaged = read(f"{BRANCHES[: begin + column]}}}{BRANCHES[begin + column :]}")
    assert damaged.problems
    kept = {each.name for computation in damaged.computations for each in computation.instructions}
    assert kept == {each.name for computation in read(BRANCHES).computations for each in computation.instructions}


def test_where_they_are_called() -> None:
    module = read(BRANCHES)
    assert [computation.name for computation in module.computations] == ["_", "e", "_.1", "_.2"]
    assert [computation.is_nested for computation in module.computations] == [False, False, True, True]
    call = module.entry.instruction("r")
    assert call.callees == {"branch_computations": ("_.1", "_", "_.2")}
    assert call.attributes["branch_computations"] == "{_.1, _, _.2}"
    assert call.text.endswith("}\n  }")
    assert module.computation("_.2").root.name == "w"
    assert module.source.text(module.computation("_.2").span).startswith("{\n    v = ")


def test_their_instructions_by_their_places() -> None:
    module = read(BRANCHES)
    for text, name in (("p = f32", "p"), ("conditional", "r"), ("exponential", "w"), ("{ q", "r"), ("}\n}", "r")):
        assert module.instruction_at(BRANCHES.index(text)).name == name


@pytest.mark.parametrize("text", [REDUCTION, IN_A_LINE, BRANCHES, WITHOUT_AN_ENTRY])
def test_the_innermost_instruction_of_each_byte(text: str) -> None:
    """By brute force over the texts of all instructions."""
    module = read(text)
    spans = [each.span for computation in module.computations for each in computation.instructions]
    for offset in range(len(text) + 1):
        around = [span for span in spans if span.start <= offset < span.end]
        found = module.instruction_at(offset)
        assert (found and found.span) == min(around, key=lambda span: span.end - span.start, default=None)


def test_computations_in_a_printed_line_without_blanks() -> None:
    text = IN_A_LINE.replace("a = f32", "a=f32").replace("b = f32", "b=f32").replace("s = f32", "s=f32")
    module = read(text)
    assert not module.problems
    names = {each.name: [inner.name for inner in each.instructions] for each in module.computations}
    assert names == {each.name: [inner.name for inner in each.instructions] for each in read(IN_A_LINE).computations}


def test_nothing_is_left_out() -> None:
    for text in (REDUCTION, IN_A_LINE, BRANCHES, WITHOUT_AN_ENTRY, in_each_other(3)):
        for module in (read(text), read(text[: len(text) * 2 // 3])):
            assert untold(module) == []


@pytest.mark.once
def test_a_deep_nest() -> None:
    module = read(in_each_other(20_000))
    assert len(module.rows()) == 40_001
    assert module.computation("_").root.name == "x"
    assert module.entry.root.called == ("_.19999",)
    assert not module.problems


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("b = f32[] parameter(1)", "b = f32[", ["p", "z", "r", "n", "a", "s"]),
        ("b = f32[] parameter(1)", "b = f32[] parameter(1", ["p", "z", "r", "n", "a", "b", "s"]),
        ("  }, dim", "  , dim", ["p", "z", "r", "n", "a", "b", "s"]),
        ("  }, dimensions={0}", "", ["p", "z", "r", "n", "a", "b", "s"]),
        ("op_name=", "op_name={", ["p", "z", "r", "n", "a", "b", "s"]),
        ("parameter(1)", "parameter(1)}", ["p", "z", "r", "n", "a", "b", "s"]),
    ],
)
def test_damage_to_one_costs_no_other_instruction(old: str, new: str, left: list[str]) -> None:
    module = read(REDUCTION.replace(old, new))
    assert module.rows().names == left
    assert module.problems


def test_a_first_line_that_looks_like_a_list_of_names() -> None:
    module = read(REDUCTION.replace(" // it's {", "").replace('a = f32[] parameter(0), metadata={op_name="}{"}', "a ,"))
    assert set(module.rows().names) >= {"p", "z", "r", "n", "b", "s"}
    assert module.problems


def test_a_broken_line_in_one_is_shown_where_it_is() -> None:
    (problem,) = read(REDUCTION.replace("ROOT s = f32[] add(a, b)", "ROOT s = f32[] add(a, b) c")).problems
    assert problem.source.position(problem.span.start) == (10, 30)


def test_a_broken_attribute_behind_one_is_shown_where_it_is() -> None:
    (problem,) = read(REDUCTION.replace("dimensions={0}", "dimensions")).problems
    assert str(problem).splitlines()[:2] == ["t:11:16: unexpected end of the text", "11 |   }, dimensions"]


@pytest.fixture
def written(corpus: list[Path], tmp_path: Path) -> list[Path]:
    """Copies of short texts of the corpus."""
    found = (path for path in corpus if path.suffix != ".mlir" and path.stat().st_size < 30_000)
    texts = [path for path in found if path.read_bytes().startswith(b"HloModule ")][::3]
    return [Path(shutil.copy(path, tmp_path / f"{number}.hlo")) for number, path in enumerate(texts)]


def test_the_corpus_with_its_computations_nested(xla: Read, written: list[Path]) -> None:
    plain = {path: read(path.read_text()) for path in written}
    for path in written:
        path.write_text(with_nested(path.read_text()))
    modules = {path: read(path.read_text()) for path in written}
    assert sum(computation.is_nested for module in modules.values() for computation in module.computations) > 100
    for path, module in modules.items():
        assert not module.problems
        assert sorted(module.rows()) == sorted(plain[path].rows())
    answers = xla(modules)
    read_by_xla = [path for path in modules if "error" not in answers[path]]
    assert len(read_by_xla) > 0.8 * len(modules)
    disagreements = [each for path in read_by_xla for each in differences(modules[path], answers[path]["computations"])]
    assert disagreements == []


def test_the_corpus_as_xla_prints_it_with_computations_nested(xla: Read, written: list[Path]) -> None:
    read_in_cpp(Path(__file__).with_name("cpp_printer.py"), written)
    paths = [nested for path in written if (nested := path.with_name(f"{path.name}.nested")).exists()]
    modules = {path: read(path.read_text()) for path in paths}
    assert [str(problem) for module in modules.values() for problem in module.problems] == []
    assert sum(computation.is_nested for module in modules.values() for computation in module.computations) > 100
    answers = xla(modules)
    read_by_xla = [path for path in modules if "error" not in answers[path]]
    assert len(read_by_xla) > 0.8 * len(modules)
    for path in read_by_xla:
        ours = {each.name: placed(each.instructions) for each in modules[path].computations}
        theirs = {name: placed_by_xla(rows) for name, rows in answers[path]["computations"]}
        assert theirs == {name: ours[name] for name in theirs}


def placed(instructions: tuple[Instruction, ...]) -> list[Any]:
    """Instructions with the places of others in the computation instead of their names, which XLA makes unique."""
    places = {instruction.name: place for place, instruction in enumerate(instructions)}
    found = ((*printed(each), groups(each)) for each in instructions)
    return [(opcode, type_, [places[name] for name in operands], among) for opcode, type_, operands, among in found]


def placed_by_xla(rows: list[Any]) -> list[Any]:
    places = dict(zip((row[0] for row in rows), count(), strict=False))
    return [(opcode, type_, [places[name] for name in operands], among) for _, opcode, type_, operands, among in rows]
