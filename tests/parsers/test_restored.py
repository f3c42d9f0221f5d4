"""Texts that were sent, copied or logged, by the programs that do that where there is one, and as they were before."""

from __future__ import annotations

import difflib
import html
import json
import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from shardscope.parsers.text import repair
from shardscope.parsers.text.modules import language
from shardscope.parsers.text.repair import restored

from tests.parsers.damage import is_linear, repeated

HLO = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0}, f32[8]{0})->f32[]}, num_partitions=8

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=11 column=4 end_column=6}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0), metadata={op_name="jit(f)/reduce_sum"}
  %y = f32[] parameter(1), metadata={op_name="jit(f)/reduce_sum"}
  ROOT %sum = f32[] add(%x, %y), metadata={op_name="jit(f)/jit(main)/reduce_sum" stack_frame_id=1}
}

ENTRY %main (a: f32[8], b: f32[8]) -> f32[] {
  %a = f32[8]{0} parameter(0), sharding={devices=[8]<=[8]}, metadata={op_name="a"}
  %b = f32[8]{0} parameter(1), sharding={devices=[8]<=[8]}, metadata={op_name="b"}
  %zero = f32[] constant(0)
  %product = f32[8]{0} multiply(%a, %b), metadata={op_name="jit(f)/jit(main)/mul" stack_frame_id=1}
  ROOT %r = f32[] reduce(%product, %zero), dimensions={0}, to_apply=%add, metadata={op_name="jit(f)/reduce_sum"}
}
"""

MLIR = """\
#loc1 = loc("x")
module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("x")) \
-> (tensor<16x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<16x8xf32> loc(#loc2)
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]> : tensor<16x8xf32> loc(#loc3)
    %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> \
: tensor<2x2xi64>}> : (tensor<16x8xf32>) -> tensor<32x8xf32> loc(#loc3)
    return %1 : tensor<16x8xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("jit(f)/add"(#loc1))
#loc3 = loc("jit(f)/sharding_constraint"(#loc1))
"""

texts = pytest.mark.parametrize("text", [HLO, MLIR], ids=["hlo", "mlir"])


def undone(text: str | bytes) -> tuple[str, tuple[str, ...]]:
    data, words = restored(text.encode() if isinstance(text, str) else text)
    return data.decode(), words


def piped(text: str, *command: str) -> str:
    """What a program makes of a text."""
    if not shutil.which(command[0]):
        pytest.skip(f"there is no {command[0]}")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


@texts
def test_what_nothing_was_done_to(text: str) -> None:
    for each in (
        text,
        textwrap.indent(text, "    "),
        text.replace("\n", "\r\n"),
        "",
        "x",
        "once\x1b upon a time\n",
        "see HloModule m\n",
    ):
        assert undone(each) == (each, ())


@texts
@pytest.mark.parametrize(
    "prefix",
    [
        "> ",
        "> > ",
        "[rank0]: ",
        "I0000 00:00:17952{0:05}.316252   23117 hlo_module.cc:1234] ",
        "2026-11-21 18:36:31.{0:06}: I external/xla/xla/service/dump.cc:55] ",
        "2026-11-21T18:36:{0:02}.000000Z stdout F ",
        "Nov 21 18:{0:02}:01 host python[77]: ",
        "worker-3  | ",
    ],
)
def test_prefixes(text: str, prefix: str) -> None:
    lines = [prefix.format(number) + line for number, line in enumerate(text.splitlines())]
    found, (words,) = undone("".join(f"{line.rstrip()}\n" for line in lines))
    assert found == text
    beginning = next(number for number, line in enumerate(lines) if "module @" in line or "HloModule" in line)
    assert repr(prefix.format(beginning)) in words


def test_a_prefix_amid_a_log() -> None:
    log = "W0000 00:00:1795.000001 cpu.cc:1] cannot\n" * 30
    lines = "".join(f"I0000 00:00:1795.{n:06} dump.cc:9] {line}\n" for n, line in enumerate(HLO.splitlines()))
    assert undone(log + lines + log)[0] == log + HLO + log


@texts
@pytest.mark.parametrize("label", [" ", "compiled:\n ", "HLO: ", "step => ", "[1] "])
def test_what_print_leaves_before_a_module(text: str, label: str) -> None:
    above = label[: label.find("\n") + 1]
    assert undone(label + text)[0] == above + text
    again = undone(f"{label}{text}\nloss 3\n{label}{text}")[0]
    assert again.count(text) == 2


@texts
def test_what_markdown_and_html_make_of_a_module(text: str) -> None:
    quoted = "See:\n\n" + textwrap.indent(text, "    ") + "\nThat is all.\n"
    found, (words,) = undone(quoted)
    assert found == f"See:\n\n{text}\nThat is all.\n"
    assert "indentation" in words
    assert undone(html.escape(text)) == (text, ("its characters were escaped as HTML",))
    assert text in undone(f"<pre>{html.escape(text)}</pre>")[0]


@texts
def test_blanks_that_do_not_break(text: str) -> None:
    assert undone(text.replace("  ", "\u00a0 ")) == (text, ("no-break blanks were replaced",))
    assert undone(text.replace(" = ", "\u202f=\u00a0").replace(" (", " \u200b("))[0] == text
    named = text.replace("jit_f", '"\u00a0"')
    assert undone(named) == (named, ())


@pytest.mark.parametrize(
    "pattern", ["HLO: HloModule m\n", " module @m {\n", "#a = b\n module {\n", "module ", "    module {\n    }\n"]
)
def test_work_grows_with_the_length(pattern: str) -> None:
    assert is_linear(lambda text: restored(text.encode()), *repeated(pattern))
    assert is_linear(lambda text: restored(text.encode()), *(f"see\n{text}" for text in repeated(pattern)))


@texts
def test_numbers_of_lines(text: str) -> None:
    assert undone(piped(text, "cat", "-n"))[0] == text


@texts
@pytest.mark.parametrize("width", [60, 72])
def test_lines_broken_by_a_terminal(text: str, width: int) -> None:
    found, (words,) = undone(piped(text, "fold", f"-w{width}"))
    assert found == text
    assert str(width) in words


@texts
def test_lines_broken_at_any_width(text: str) -> None:
    """They are put together as they were, or left alone where too few words are broken to tell."""
    restored_at = []
    for width in range(40, 180):
        lines = [line[at : at + width] for line in text.splitlines() for at in range(0, max(len(line), 1), width)]
        broken = "".join(f"{line}\n" for line in lines)
        found, words = undone(broken)
        assert found == (text if words else broken), width
        restored_at += [width] * bool(words)
    assert set(restored_at) >= {40, 42, 43, 44, 45, 46, 47, 50, 51, 52, 54, 56, 58, 60, 61}


@texts
@pytest.mark.parametrize("beyond", [0, 1])
def test_what_is_too_long_to_be_copied_is_left_as_it_is(
    text: str, beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = piped(text, "fold", "-w60")
    monkeypatch.setattr(repair, "_MAX_COPY_BYTES", len(broken.encode()) - beyond)
    assert undone(broken)[0] == (broken if beyond else text)


@pytest.mark.parametrize(("last", "first"), [(",", "word"), ("word", "%b"), ("1", "2"), ("a", ")")])
def test_lines_broken_at_words_stay(last: str, first: str) -> None:
    """As many as there may be that are as long as the longest, only a word that is broken tells of a terminal."""
    line = f"{first} = ".ljust(60 - len(last), "x") + last
    text = "HloModule m\n\n" + f"{line}\n" * 9
    assert (undone(text)[0] == text) == (not (last + first).isalnum())


def test_lines_broken_by_hand_stay() -> None:
    by_hand = "HloModule m\n" + "e {\np = f32[8] parameter(0)\nq = f32[8] negate(p)\nr = f32[8] negate(q)\n}\n" * 9
    assert undone(by_hand) == (by_hand, ())
    remarks = "// CHECK: HloModule m\n// CHECK: e {\n// CHECK:   p = f32[] parameter(0)\n// CHECK: }\n"
    assert undone(remarks) == (remarks, ())


@texts
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings(text: str, encoding: str) -> None:
    assert undone(text.encode(encoding))[0] == text


@texts
def test_colours(text: str) -> None:
    coloured = text.replace("%", "\x1b[1;34m%\x1b[0m").replace(" = ", "\x1b[K = ")
    assert undone(coloured) == (text, ("the escape sequences of a terminal were left out",))


@texts
def test_what_only_looks_like_a_diff(text: str) -> None:
    """Marks of a diff without the numbers of its lines."""
    lines = text.splitlines(keepends=True)
    for mark in ("@@ -\n", "@@ - 1 @@\n", "- a list\n", "+ another\n", "@@ -1,2 +1,3\n"):
        marked = "".join([lines[0], "// ", mark, *lines[1:-1], "// ", mark, lines[-1]])
        assert undone(marked) == (marked, ())


@texts
def test_a_diff_with_all_of_the_text(text: str) -> None:
    lines = text.splitlines(keepends=True)
    before = [line for number, line in enumerate(lines) if number % 4 != 1]
    before[3:5] = ["what was here before\n"]
    found, (words,) = undone("".join(difflib.unified_diff(before, lines, "a/f", "b/f", n=1000)))
    assert [line for line in found.splitlines() if line] == [line for line in text.splitlines() if line]
    assert "after the change" in words


def test_what_compilers_print_is_as_it_was(corpus: list[Path]) -> None:
    for path in corpus:
        data = path.read_bytes()
        if language(data):
            assert restored(data)[0] is data, path


@pytest.mark.parametrize(
    ("between", "alias", "module"),
    [("", "#a", "module @m {\n}\n"), ("x\n", "  #a", "module @m {\n}\n"), ("\n", "  #a", "  module @m {\n  }\n")],
    ids=["directly", "elsewhere", "as indented"],
)
def test_lines_right_above_an_indented_module_are_its_own(between: str, alias: str, module: str) -> None:
    """An alias is; one farther up stays where it is, and a module below something as indented may be part of that."""
    text = f"see:\n  #a = loc(unknown)\n{between}  module @m {{\n  }}\n"
    assert undone(text)[0] == f"see:\n{alias} = loc(unknown)\n{between}{module}"


def test_modules_in_modules_keep_their_indentation() -> None:
    data = b"module @outer {\n  func.func @f() {\n    return\n  }\n  module @inner {\n  }\n}\n"
    assert restored(data)[0] == data


@texts
@pytest.mark.parametrize(
    "written", [repr, json.dumps, lambda text: json.dumps({"hlo": text}), lambda text: repr(text.encode())]
)
def test_strings_of_python_and_json(text: str, written: Callable[[str], str]) -> None:
    plain, words = restored(written(text).encode())
    assert plain.decode() == text
    assert words == ("it was written as a string of Python or JSON",)
    assert restored(text.encode()) == (text.encode(), ())
