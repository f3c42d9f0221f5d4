"""Broken texts: what is wrong and where, and that all else is still there."""

from __future__ import annotations

from collections import Counter

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.mlir import MlirModule, parse_module
from shardscope.parsers.source import Source

from .test_fuzz import look_at_everything

WHOLE = """\
module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %a, %a : tensor<8xf32>
    %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %3 = stablehlo.add %b, %c : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = call @f(%1) : (tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
  func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}
"""


def read(text: str) -> MlirModule:
    return parse_module(Source("m.mlir", text.encode("utf-8", "surrogateescape")))


def with_line(number: int, line: str) -> str:
    """The whole text with another line, counted from 1."""
    lines = WHOLE.splitlines()
    lines[number - 1] = line
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("line", "text", "message", "place"),
    [
        (4, "    %0 = stablehlo.add %a, %a : tensor<8xf32", "unexpected end of the text", (4, 45)),
        (
            4,
            "    %0 = stablehlo.add %a, %a : tensor<8xf32>, i1",
            "types of 2 operands and 2 results for 2 and 1",
            (4, 5),
        ),
        (4, "    %0 = stablehlo.add %a %a : tensor<8xyz>>", "unexpected '>'", (4, 44)),
        (4, "    %0 = stablehlo.add %a, %a {a = 1, = 2} : tensor<8xf32>", "not an entry of a dictionary", (4, 39)),
        (4, "    stablehlo add", "not MLIR", (4, 5)),
        (2, '  sdy.mesh @mesh = <["x"=2, "x"=2]>', "a mesh axis is named twice", (2, 20)),
        (2, '  sdy.mesh @mesh = <["x"=]>', "unexpected ']'", (2, 26)),
        (
            5,
            '    %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x3xi64>}> ({',
            "2 integers in a literal of 3",
            (5, 56),
        ),
        (12, "", "a function is not closed", (13, 3)),
        (
            13,
            "  func.func private @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{=}]>}) -> tensor<8xf32> {",
            "unexpected '='",
            (13, 81),
        ),
        (
            13,
            '  func.func private @f(%a: tensor<8xf32>) -> (tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]T(1)}"}) {',
            "(1,) is no permutation of 1 dimensions",
            (13, 79),
        ),
    ],
)
def test_says_what_is_wrong_and_where(line: int, text: str, message: str, place: tuple[int, int]) -> None:
    problems = read(with_line(line, text)).problems
    told = {(problem.message, problem.source.position(problem.span.start)) for problem in problems}
    assert (message, place) in told, [str(problem) for problem in problems]


def test_says_where_on_several_lines_and_in_words() -> None:
    """Of an operation with a region, remarks and characters of several bytes, and behind its region."""
    text = WHOLE.replace(
        "    }) : (tensor<8xf32>) -> tensor<8xf32>",
        '    }) {a = "é", // why {\n\n       b} : (tensor<8xf32>)\n    -> tensor<8xf32> loc(unknown) : i1',
    )
    (problem,) = read(text).problems
    assert str(problem) == (
        "m.mlir:12:35: unexpected ':'\n"
        "12 |     -> tensor<8xf32> loc(unknown) : i1\n"
        "   |                                   ^\n"
        "expected the end of the text"
    )


def test_an_operation_that_is_not_closed() -> None:
    text = "func.func @f() {\n  %0 = sdy.manual_computation(%a) in_shardings=[] manual_axes={} (%b: f32) {\n    a.b"
    assert "its types are missing" in [problem.message for problem in read(text).problems]


@pytest.mark.parametrize("cut", range(30, len(WHOLE), 3))
def test_cut_off_anywhere(cut: int) -> None:
    module = read(WHOLE[:cut])
    look_at_everything(module)
    whole = [each for each in read(WHOLE).walk() if each.nest is None and each.span.end < cut]
    assert {(each.span.start, each.name) for each in whole} <= {(each.span.start, each.name) for each in module.walk()}


@pytest.mark.parametrize(
    "last",
    [
        *("s", "stablehlo", "%", "%4", "%4 ", "%4 =", "%4, ", "%4, %5", "%4:2 = ", '"', '"stablehlo.all_red', '"a.b"'),
        *("r", "retur", "^", "^bb1", "#", "#loc1", "!type", "// on\n    %4"),
    ],
)
def test_the_last_line_is_cut_off_before_it_is_an_operation(last: str) -> None:
    above = "%0 = stablehlo.add %a, %a : tensor<8xf32>"
    module = read(f"module @m {{\n  func.func @f(%a: tensor<8xf32>) {{\n    {above}\n    {last}")
    *_, operation = module.walk()
    assert module.source.text(operation.span).rstrip() == above
    assert [str(each) for each in operation.result_types] == ["tensor<8xf32>"]
    problems = {(problem.message, problem.source.position(problem.span.start)) for problem in module.problems}
    assert problems & {("not MLIR", (4, 5)), ("not MLIR", (5, 5))}


def test_what_is_no_mlir_at_all() -> None:
    with pytest.raises(ParseError, match="this is not MLIR"):
        read("HloModule m\n\nFileNames\n")


NEWLINE = "\r\n"


# Each was found by damaging texts.
@pytest.mark.parametrize(
    "text",
    [
        # a function in generic form without arguments
        '"func.func"() <{function_type = () -> (), sym_name = "f"}> ({\n  "func.return"() : () -> ()\n}) : () -> ()\n',
        # what stands for other things in templates, in a text itself
        '%0 = a.b %c : f32 loc(fused<{a = "%"} {}>["№"])\n',
        "#loc = loc(№)\na.b loc(#loc)\n",
        'func.func @f(%a: f32 {(…)} "" (…) {\n  return\n}\n',
        # a function whose header opens no region, in front of one that does
        "}\nfunc.func @f() {\n} func.func @g() {\n  return\n}\n",
        "module {\n  func.func @f(%a: tensor<8(((((() {\n    return\n  }\n}\n",
        # a compact reduction that cannot be read
        "%0 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across di%3 = a.b : f32\n",
        # blanks in front of the first operation
        "    return %0 : tensor<8xf32>\n",
        # a line in the aliases that begins like an operation
        "#loc = l\noc(#loc1)\n",
        # results and what follows them on different lines
        "%c\n\n= stablehlo.constant dense<1> : tensor<i32>\n",
        '"eturn"(%1) : (tensor<2xi32>) -> ()\n',
        # a name in quotes that starts a line of an alias, or of nothing
        '#loc = loc(\n"shard_map")\n"a.b"() : () -> ()\n',
        '#loc1 =module "loc(""a")\n"builtin.module"\n"a.b"() : () -> ()\n',
        # more results than a number in Python has digits
        f"func.func @f() {{\n  %0:{'9' * 5000} = a.b : f32\n  return\n}}\n",
        # what is no text in a location
        'func.func @f() {\n  %0 = a.b : f32 loc("\udcff")\n  return\n}\n',
        # a remark between an operation and a line that is none but for its results
        'func.func @f() {\n  %0 = a.b : f32\n  // the return of {{it}}\n  %1 = "a.b\n',
        # a function whose start is inside of the attributes of another
        "func.func @f(%a: f32 {a.b\nfunc.func @g, ?}) {\n  return\n}\n",
        # a colon in front of what looks like an operation
        'func.func @f(%a: f32) {\n  "a.b"(%a) : (f32ECK-NEXT:  return\n  return\n}\n',
        # operations inside of the list of a block's arguments
        "func.func @f() {\n^bb0(%a: f32, %b: ten\n  (%c: f32):\n  %0 = stablehlo.add %a, %b : f32\n  ): return\n}\n",
        # results far in front of their operation
        f"func.func @f(%a: f32) {{\n  %0 ={NEWLINE * 999}  stablehlo.add %a, %a : f32\n  return\n}}\n",
        f"func.func @f(%a: f32){NEWLINE * 999}  {{ stablehlo.add %a, %a : f32\n  return\n}}\n",
        # a name that ends where no name does
        "func.func @f() {\n  return-x\n  return\n}\n",
        # results in front of what looks like the key of an attribute
        "func.func @f() {\n  %c = a.b = a.c 4 : i32\n  return\n}\n",
    ],
)
def test_found_by_fuzzing(text: str) -> None:
    look_at_everything(read(text))


@pytest.mark.parametrize("line", ["a.b]]c %0 : i32", "%%%5 = a.b %0 : i32"])
def test_what_starts_no_operation_is_not_counted(line: str) -> None:
    module = read(f"func.func @f() {{\n  %0 = a.c : i32\n  {line}\n  return\n}}\n")
    assert module.opcode_counts() == Counter(operation.name for operation in module.walk())


FUNCTION = "func.func @f() {{\n{}\n  return\n}}\n"
OUTER = '  %0 = "a.b"() ({\n'
INNER = '    "c.d"() : () -> i1\n'
CLOSED = "  }) : () -> i32"


@pytest.mark.parametrize(
    "lines",
    [
        f"{OUTER}{INNER}{CLOSED}",
        f"{OUTER}  ^bb0(%a: i1):\n{INNER}{CLOSED} loc(unknown)",
        f"{OUTER}{INNER}  }}, {{\n{INNER}{CLOSED}",
        f"{OUTER}{OUTER}{INNER}{CLOSED}\n  }}) : () -> i64",
        f"{OUTER}  {OUTER}{INNER}{CLOSED}\n  }}) : () -> i64",
        f"{OUTER}{INNER}  }}) {{c = 1 : i8}} : () -> i32",
        f"{OUTER}{INNER}  }}) : () ->\n    i32",
        f"{OUTER}\n{INNER}{CLOSED}",
        "\t%0 = a.b : i32\n \ta.c : i64",
        "  %0, %1:2 = a.b : i32, i1, i1",
        "  %0= a.b : i32\n  %1 =a.b : i64",
        '  %0 = a.b {c = "} : i1"} : i32',
        '  %0 = "a.b" () : () -> i32\n  "a.b" () : () -> ()',
        "  %0 =\n    a.b : i32",
        "  %0,\n  %1 = a.b : i32, i1",
        "  a.b %0,\n    %1 : i32, i64",
        "  return %0,\n    %1 : i32, i64",
        "  return %0 : tensor<8x\n    f32>",
        "  %0 = a.b %1 : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8x\n    f32>)",
        f"{OUTER}{INNER}  }}) : () -> tensor<\n    i32>",
        "  %0 = a.b : !c.loc\n  %1 = a.b : !c.loc loc(unknown)\n  %2 = a.b : i32",
    ],
)
def test_counts_of_what_no_printer_writes(lines: str) -> None:
    for text in (FUNCTION.format(lines), FUNCTION.format(f"  %x = a.b : i1 loc(unknown)\n{lines}")):
        module = read(text)
        assert module.opcode_counts() == Counter(operation.name for operation in module.walk())
