"""Damaged texts: nothing but ParseError comes out, nothing gets lost, and the work grows as the text does.

What was found this way is in `test_broken.py`, as short texts.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.mlir import (
    Annotations,
    MlirModule,
    Operation,
    Parameter,
    frames,
    names,
    parse_module,
)
from shardscope.parsers.mlir.rows import FunctionRows
from shardscope.parsers.source import Source

from tests.sweeps import sampled

from ..damage import SCRAPS, SEEDS, damaged_line, damaged_texts, is_linear, portable, repeated
from ..pieces import mlir_pieces

pytestmark = pytest.mark.once

OF_ANNOTATIONS = [name for name, member in vars(Annotations).items() if isinstance(member, property)]
OF_OPERATIONS = (
    "results",
    "operands",
    "operand_types",
    "result_types",
    "replica_groups",
    "source_target_pairs",
    "channel",
)


def look_at_everything(module: MlirModule) -> None:
    """Ask for all there is, and see that all accounts of it agree."""
    assert all(problem.source is module.source for problem in module.problems)
    assert all(str(problem).startswith(module.source.name) for problem in module.problems[:99])
    operations = [each for each in module.walk() if each.text is module.text]
    for operation in operations:
        look_at(operation)
    starts = {operation.span.start for operation in operations}
    for function in module.functions:
        assert {row.start for row in FunctionRows(function).rows} <= starts or module.problems
    for function in module.functions:
        assert function.span.start in starts or module.problems
        with suppress(ParseError):
            assert f"{function.name} {function.attributes}"
        with suppress(ParseError):
            for parameter in (*function.arguments, *function.results):
                look_at_parameter(parameter)
    counts = module.opcode_counts()
    # Only what starts a line is counted, and a line that got into an attribute may look like an operation.
    if not module.problems and all(starts_a_line(operation) for operation in operations):
        assert Counter(operation.name for operation in operations) <= Counter(counts)
    for name in ("stablehlo.add", "stablehlo.all_reduce", "return", "sdy.mesh"):
        wanted = [operation.span for operation in operations if operation.name == name]
        found = [operation.span for operation in module.operations({name})]
        assert found == wanted or module.problems
        # A search finds what cannot be reached from above too.
        assert {span.start for span in wanted} <= {span.start for span in found}
    assert all(mesh.size for mesh in module.meshes.values())
    parts = list(mlir_pieces(module))
    assert b"".join(module.source.data[part.span.start : part.span.end] for part in parts) == module.source.data
    assert all(before.span.end == after.span.start for before, after in pairwise(parts))


def starts_a_line(operation: Operation) -> bool:
    data = operation.text.source.data
    return not data[data.rfind(b"\n", 0, operation.span.start) + 1 : operation.span.start].strip()


def look_at(operation: Operation) -> None:
    for name in OF_OPERATIONS:
        with suppress(ParseError):
            getattr(operation, name)
    with suppress(ParseError):
        assert operation.attributes is not None
        look_at_annotations(operation.annotations)
    with suppress(ParseError):
        assert len(names(operation.location)) + len(frames(operation.location)) >= 0
    with suppress(ParseError):
        for region in operation.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    look_at_parameter(argument)


def look_at_parameter(parameter: Parameter) -> None:
    with suppress(ParseError):
        assert str(parameter.type) is not None
    with suppress(ParseError):
        look_at_annotations(parameter.annotations)
    with suppress(ParseError):
        names(parameter.location)


def look_at_annotations(annotations: Annotations) -> None:
    for name in OF_ANNOTATIONS:
        with suppress(ParseError):
            getattr(annotations, name)


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[bytes]:
    """Short texts of the corpus, printed in all ways."""
    found = portable(path for path in sorted(corpus) if path.suffix == ".mlir")
    return [text for text in found if len(text) < 9000][::3]


@pytest.mark.parametrize("first", range(0, SEEDS, 500))
def test_damaged_texts(texts: list[bytes], first: int) -> None:
    for source in damaged_texts(texts, first):
        try:
            module = parse_module(source)
        except ParseError:
            continue
        look_at_everything(module)


@pytest.mark.parametrize("seed", range(200))
def test_damage_to_a_line_leaves_the_other_lines(texts: list[bytes], seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice(texts)
    whole = parse_module(Source("whole", text))
    operations = [each for each in whole.walk() if each.nest is None and each.text is whole.text]
    chosen = chance.choice([each for each in operations if b"\n" not in text[each.span.start : each.span.end]]).span
    scraps = [scrap for scrap in SCRAPS if not set(scrap) & set(b"\n{}")]
    broken = parse_module(damaged_line(chance, text, chosen, scraps))
    left = {broken.source.text(each.span) for each in broken.walk() if each.text is broken.text}
    whole = Source("whole", text)
    lost = {
        whole.text(each.span) for each in operations if each.text.source.data == text and each.span != chosen
    } - left
    # Of a broken string or bracket the line below may be a part.
    assert len(lost) <= 1


FUNCTION = "module @m {\n  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
QUOTED = '"a.b"() ({'
LONG = {
    "open braces": [f"{FUNCTION}    %0 = stablehlo.add %a, %a {each}" for each in repeated("{")],
    "braces": [
        f"{FUNCTION}    %0 = stablehlo.add %a, %a {each}{each.replace('{', '}')} : f32" for each in repeated("{")
    ],
    "closed braces": [FUNCTION + each for each in repeated("}\n")],
    "regions": [FUNCTION + each for each in repeated("  a.b {\n", 4)],
    "regions and their ends": [f"{FUNCTION}{each}{each.replace('a.b {', '}')}" for each in repeated("a.b {\n", 4)],
    "regions one after the other": [FUNCTION + each for each in repeated("  a.b {\n  }\n")],
    "regions whose ends are not indented": [
        f"{FUNCTION}{each}{each.replace(QUOTED, '  }) : () -> ()')}" for each in repeated(f"    {QUOTED}\n", 4)
    ],
    "quoted regions": [FUNCTION + each for each in repeated('  "a.b"() ({\n', 4)],
    "open brackets": [f"{FUNCTION}    %0 = a.b {each}" for each in repeated("(", 4)],
    "angles": [f"{FUNCTION}    %0 = stablehlo.add %a, %a : {each}" for each in repeated("<")],
    "square brackets": [f"{FUNCTION}    %0 = a.b {each}{each.replace('[', ']')}" for each in repeated("[")],
    "tensors in tuples": [f"{FUNCTION}    %0 = a.b %a : {each}" for each in repeated("tuple<")],
    "blanks": [f"{FUNCTION}    %0 = a.b %a{each}: f32" for each in repeated(" ")],
    "lines of blanks": [FUNCTION + each for each in repeated("  \n")],
    "lines": [FUNCTION + each for each in repeated("x\n")],
    "quotes": [f"{FUNCTION}    %0 = a.b {each}" for each in repeated('"')],
    "a long string": [f'{FUNCTION}    %0 = a.b "{each}" : f32\n' for each in repeated("x")],
    "escapes": [f'{FUNCTION}    %0 = a.b "{each}' for each in repeated("\\")],
    "strings without an end": [f"{FUNCTION}{each}" for each in repeated('    %0 = a.b "x\n')],
    "comments": [FUNCTION + each for each in repeated("// ")],
    "lines of comments": [FUNCTION + each for each in repeated("//\n")],
    "slashes": [FUNCTION + each for each in repeated("/")],
    "percent signs": [FUNCTION + each for each in repeated("%")],
    "results": [f"{FUNCTION}    {each}%b = a.b : f32\n" for each in repeated("%b, ")],
    "results on lines": [FUNCTION + each for each in repeated("%b,\n")],
    "results on lines behind an operation": [f"{FUNCTION}    a.b\n{each}" for each in repeated("%b,\n")],
    "results without an operation": [FUNCTION + each for each in repeated("%0 = \n")],
    "many results": [f"{FUNCTION}    %0:{each} = a.b : f32\n" for each in repeated("9")],
    "operands": [f"{FUNCTION}    %0 = a.b {each}%a : f32\n" for each in repeated("%a, ")],
    "a long name": [f"{FUNCTION}    %{each} = a.b : f32\n" for each in repeated("a")],
    "a long operation name": [f"{FUNCTION}    %0 = {each} : f32\n" for each in repeated("a.")],
    "operations": [f"{FUNCTION}{each}" for each in repeated("    %0 = stablehlo.add %a, %a : tensor<8xf32>\n")],
    "operations in a line": [FUNCTION + each for each in repeated("%0 = stablehlo.add %a, %a : f32 ")],
    "operations of one name in words": [FUNCTION + each for each in repeated("stablehlo.add")],
    "labels": [FUNCTION + each for each in repeated("^bb0:\n")],
    "half labels": [FUNCTION + each for each in repeated("^bb0(\n")],
    "labels in a line": [FUNCTION + each for each in repeated("^")],
    "a long constant": [
        f"{FUNCTION}    %0 = stablehlo.constant dense<[{each}1]> : tensor<9xi64>\n" for each in repeated("1, ")
    ],
    "rows of a constant": [
        f"{FUNCTION}    %0 = stablehlo.constant dense<[{each}[1]]> : tensor<9x1xi64>\n" for each in repeated("[1], ")
    ],
    "groups": [
        f'{FUNCTION}    %0 = "stablehlo.all_gather"(%a) <{{replica_groups = dense<[{each}[1]]> : tensor<9x1xi64>}}> : '
        "(tensor<8xf32>) -> tensor<8xf32>\n"
        for each in repeated("[1], ")
    ],
    "attributes": [f"{FUNCTION}    %0 = a.b {{{each}b = 1}} : f32\n" for each in repeated("a = 1, ")],
    "keys": [f"{FUNCTION}    %0 = a.b {each} : f32\n" for each in repeated("a = ")],
    "axes": [
        f"{FUNCTION}    %0 = a.b %a {{sdy.sharding = #sdy.sharding<@m, [{each}{{}}]>}} : f32\n"
        for each in repeated('{"x"}, ')
    ],
    "functions": repeated("func.func @f() {\n  return\n}\n"),
    "functions without an end": repeated("func.func @f() {\n"),
    "functions in functions": [
        "".join(" " * (number % 99) + "func.func @f() {\n" for number in range(size)) for size in (100, 200, 800, 2000)
    ],
    "function names": repeated("func.func "),
    "arguments": [f"func.func @f({each}%b: f32) {{\n  return\n}}\n" for each in repeated("%a: f32, ")],
    "aliases": [f"{each}{FUNCTION}" for each in repeated("#loc = loc(unknown)\n")],
    "aliases of each other": [
        "".join(f"#loc{number} = loc(#loc{number + 1})\n" for number in range(size)) + "a.b loc(#loc0)\n"
        for size in (100, 200, 800, 2000)
    ],
    "locations in locations": [f"{FUNCTION}    a.b loc({each}" for each in repeated('"a"(')],
    "calls in calls": [f"{FUNCTION}    a.b loc({each}" for each in repeated('callsite("a" at ')],
    "fused locations": [f"{FUNCTION}    a.b loc(fused[{each}unknown])\n" for each in repeated('"a", ')],
    "resources": [f"{{-#{each}" for each in repeated("a")],
    "starts of resources": repeated("{-#\n"),
    "modules": repeated("module {\n"),
}


@pytest.mark.parametrize("texts", sampled(LONG.values(), 14), ids=LONG)
def test_work_grows_with_the_length(texts: list[str]) -> None:
    assert is_linear(look_at_text, *texts)


def look_at_text(text: str) -> None:
    with suppress(ParseError):
        look_at_everything(parse_module(Source("long", text.encode())))
