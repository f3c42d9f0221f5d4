"""Texts with several modules in them: what a program printed, and what XLA dumps to standard output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from shardscope.parsers.source import Span
from shardscope.parsers.text.modules import language, parts

from tests.parsers.damage import is_linear, repeated

HLO = b"""HloModule jit_f, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  ROOT %y = f32[] parameter(1)
}

ENTRY %main (a: f32[8]) -> f32[8] {
  ROOT %a = f32[8]{0} parameter(0)
}
"""
PRETTY = b"""#loc1 = loc("a")
module @jit_f attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%arg0: tensor<8xf32> loc("a")) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32> loc(#loc1)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
"""
GENERIC = (
    b'"builtin.module"() <{sym_name = "jit_g"}> ({\n  "a.b"() : () -> ()\n}) : () -> ()\n\n{-#\n  a: {\n  }\n#-}\n'
)
UNNAMED = b"module {\n}\n"
NAMES = {HLO: "jit_f", PRETTY: "jit_f", GENERIC: "", UNNAMED: ""}

said = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")))
prose = st.lists(said, max_size=3).map(lambda lines: "".join(f"{line}\n" for line in lines).encode())


HEADER = re.compile(rb"[#!{}]|\s*(?:%?[\w.\-]+\s*[({]|->)")
"""What may begin the rest of a module: an alias, or a computation by its name."""


def is_prose(lines: bytes) -> bool:
    return language(lines) is None and not any(map(HEADER.match, lines.splitlines()))


@given(st.lists(st.tuples(prose, st.sampled_from(list(NAMES))), min_size=1), prose)
def test_modules_with_prose_between(modules: list[tuple[bytes, bytes]], last: bytes) -> None:
    """A blank line is what `print` leaves behind a module's text."""
    assume(is_prose(last) and all(is_prose(before) for before, _ in modules))
    text = b"".join(before + module + b"\n" for before, module in modules) + last
    found = parts(text)
    assert [text[part.span.start : part.span.end].strip() for part in found] == [one.strip() for _, one in modules]
    assert [part.name for part in found] == [NAMES[module] for _, module in modules]


def test_every_text_of_a_compiler_is_one(corpus: list[Path]) -> None:
    texts = [path for path in corpus if path.suffix == ".mlir" or path.read_bytes().startswith(b"HloModule ")]
    assert texts
    for path in texts:
        data = path.read_bytes()
        assert [part.span for part in parts(data)] == [Span(0, len(data))], path


@pytest.mark.parametrize("above", [b"// a remark\n", b"#alias = loc(unknown)\n"])
@pytest.mark.parametrize("between", [b"", b"\n", b"loss 3.25\n"])
@pytest.mark.parametrize("end", [b"", b"done\n", b"done"])
def test_lines_right_above_a_module(above: bytes, between: bytes, end: bytes) -> None:
    """They are an MLIR module's own, unless they follow the end of another; nothing above HLO is."""
    for text in (HLO, UNNAMED):
        data = text + between + above + text + end
        first, second = parts(data)
        own = text is UNNAMED and between != b""
        assert data[second.span.start :].startswith(above + text if own else text)
        assert data[first.span.start : first.span.end].startswith(text.rstrip())
        # A word without the end of its line may be the beginning of one that is cut off.
        assert data[second.span.start : second.span.end].endswith(b"done") == (end == b"done")


@pytest.mark.parametrize("text", [HLO, PRETTY, GENERIC])
def test_what_is_cut_off_or_not_understood_is_no_prose(text: bytes) -> None:
    for end in range(0, len(text), 9):
        (part,) = parts(text[:end])
        assert part.span == Span(0, end)
    late = text.rstrip() + b"\n%late = f32[8]{0} add(%a, %b)\n"
    assert [part.span for part in parts(late)] == [Span(0, len(late))]
    early = b"// RUN: tool %s\n\n" + text
    assert [part.span for part in parts(early)] == [Span(0, len(early))]


@pytest.mark.once
@pytest.mark.parametrize("gap", [b" ", b"\n", b" // it's {\n", b""])
@pytest.mark.parametrize("behind", [b"", b"{'loss': 3.25}\n"])
def test_generic_module_with_attributes_behind_its_region(gap: bytes, behind: bytes) -> None:
    text = b'"builtin.module"() ({\n"a.b"() {a = [{x = 1\n}, {x = 2}]} : () -> ()\n})' + gap
    text += b"{n = 8 : i32} : ()\n \n -> () loc(#loc)\n#loc = loc(unknown)\n"
    (part,) = parts(text + behind)
    assert text[part.span.start : part.span.end].rstrip() == text.rstrip()


def test_what_xla_prints() -> None:
    text = (
        b"noise\n*** Begin a.txt ***\n"
        + HLO
        + b"\n*** End a.txt ***\nnoise\n"
        + HLO
        + b"*** Begin b.txt ***\nbuffers\n"
    )
    found = parts(text)
    assert [(part.file, part.name) for part in found] == [("a.txt", ""), ("", "jit_f"), ("b.txt", "")]
    assert [text[part.span.start : part.span.end] for part in found] == [HLO + b"\n", HLO, b"buffers\n"]


LONG = (
    *("HloModule m\n", "*** Begin a ***\n", "*** Begin a ***\nx\n*** End b ***\n", "module {\n", "module {\n}\n#a\n"),
    *("#a\n", "module {\n}\n{-# ", "//\nmodule {\n", "\n}"),
)


@pytest.mark.parametrize("pattern", LONG)
def test_work_grows_with_the_length(pattern: str) -> None:
    assert is_linear(lambda text: parts(text.encode()), *repeated(pattern))
