"""What lies just within a limit of the parsers is read, and what lies just beyond it is not; and places to a byte."""

from __future__ import annotations

import pytest
from shardscope.parsers import parse
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import Operand, parse_module, references
from shardscope.parsers.hlo.call import backend_config, parse_call
from shardscope.parsers.hlo.reading import read_tables
from shardscope.parsers.hlo.references import broken_references
from shardscope.parsers.mlir import statement
from shardscope.parsers.mlir.collectives import parse_pairs
from shardscope.parsers.mlir.locations import (
    MAX_CALLERS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_PARTS,
    CallSiteLoc,
    FileLoc,
    FusedLoc,
    Locations,
    NameLoc,
    UnknownLoc,
)
from shardscope.parsers.mlir.module import parse_module as parse_mlir
from shardscope.parsers.mlir.sdy_parser import parse_mesh
from shardscope.parsers.mlir.statement import MAX_RESULTS, result_names
from shardscope.parsers.mlir.text import MAX_RESOLVED, MlirText
from shardscope.parsers.sharding_syntax.jax_arrays import PartitionSpec
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Source, Span


@pytest.mark.parametrize("depth", [1, 2, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2])
def test_names_in_names(depth: int) -> None:
    def definition(alias: str) -> str:
        number = int(alias.removeprefix("#loc"))
        return f'loc("{number}"(#loc{number + 1}))' if number < depth else 'loc("last.py":3:4)'

    location = Locations(definition).resolve("loc(#loc0)")
    for number in range(min(depth, MAX_DEPTH + 1)):
        assert isinstance(location, NameLoc)
        assert location.name == str(number)
        assert location.child is not None
        location = location.child
    assert isinstance(location, FileLoc if depth <= MAX_DEPTH else UnknownLoc)


@pytest.mark.parametrize("callers", [1, MAX_CALLERS - 1, MAX_CALLERS, MAX_CALLERS + 1, 3 * MAX_CALLERS])
def test_callers_of_callers(callers: int) -> None:
    def definition(alias: str) -> str:
        number = int(alias.removeprefix("#loc"))
        return (
            f'loc(callsite("f.py":{number}:1 at #loc{number + 1}))' if number < callers else f'loc("f.py":{number}:1)'
        )

    location = Locations(definition).resolve("loc(#loc0)")
    assert isinstance(location, CallSiteLoc)
    lines = [each.line for each in (location.callee, *location.callers) if isinstance(each, FileLoc)]
    assert lines == [*range(callers + 1)][: MAX_CALLERS + 1]


@pytest.mark.parametrize("parts", [1, MAX_PARTS, MAX_PARTS + 1, MAX_PARTS + 5])
def test_named_parts_of_a_location(parts: int) -> None:
    location = Locations(lambda _: 'loc("f.py":1:2)').resolve(f"loc(fused[{', '.join(['#a'] * parts)}])")
    assert isinstance(location, FusedLoc)
    known = min(parts, MAX_PARTS)
    assert [type(each) for each in location.parts] == [FileLoc] * known + [UnknownLoc] * (parts - known)


@pytest.mark.parametrize("digits", [1, MAX_DIGITS, MAX_DIGITS + 1, 5000])
def test_numbers_of_lines(digits: int) -> None:
    location = Locations(lambda _: None).resolve(f'loc("f.py":{"7" * digits}:1)')
    assert location == FileLoc("f.py", int("7" * min(digits, MAX_DIGITS)), 1, int("7" * min(digits, MAX_DIGITS)), 1)


@pytest.mark.parametrize("results", [1, 2, MAX_RESULTS, MAX_RESULTS + 1, 10**30])
def test_results_of_an_operation(results: int) -> None:
    if results > MAX_RESULTS:
        with pytest.raises(ValueError, match="more than"):
            result_names(f"%a, %0:{results}")
    else:
        assert result_names(f"%a, %0:{results}") == ("%a", *(f"%0#{number}" for number in range(results)))


@pytest.mark.parametrize("beyond", [0, 1])
def test_an_operation_has_no_results_beyond_belief(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement, "MAX_RESULTS", 4)
    count = 4 + beyond
    types = f"({', '.join(['i32'] * count)})"
    text = f'module {{\n  %0:{count} = "stablehlo.custom_call"() : () -> {types}\n}}\n'
    module = parse_mlir(Source("f", text.encode()))
    (operation,) = module.operations({"stablehlo.custom_call"})
    assert len(operation.results) == (0 if beyond else count)
    assert [problem.message for problem in module.problems] == ["more than 4 results"] * beyond


@pytest.mark.parametrize("mark", ["#", "!"])
@pytest.mark.parametrize("beyond", [0, 1])
def test_what_aliases_stand_for(mark: str, beyond: int) -> None:
    """Attributes and types: a few bytes of aliases may stand for all of the memory."""
    length = 1 << 10
    value = "tuple<" + "x" * (length - len("tuple<>")) + ">"
    text = MlirText(Source("f", f"{mark}a = {value}\nmodule {{\n}}\n".encode()))
    times = MAX_RESOLVED // length + beyond
    spelled = f"{mark}a," * times
    assert text.resolved(spelled) == (spelled if beyond else f"{value}," * times)
    assert text.resolved(f"{mark}b") == f"{mark}b"


@pytest.mark.parametrize(("bits", "value"), [(8, -1), (16, -2), (32, -(2**31)), (64, -3), (64, 2**62)])
def test_integers_in_bytes_have_signs(bits: int, value: int) -> None:
    data = value.to_bytes(bits // 8, "little", signed=True)
    assert parse_pairs(f'dense<"0x{data.hex()}{bytes(bits // 8).hex()}"> : tensor<1x2xi{bits}>') == ((value, 0),)


@pytest.mark.parametrize("axis", [AxisRef("x"), AxisRef("x", (1, 2)), AxisRef("a:b", (12, 34)), AxisRef("x:(1)")])
def test_axes_are_read_as_they_are_spelled(axis: AxisRef) -> None:
    assert AxisRef.spelled(str(axis)) == axis


@pytest.mark.parametrize(("text", "stop"), [(b"what", 1), (b"what is\nthis\n", 7), (b"\nwhat", 1)])
def test_the_first_line_of_what_is_no_module_is_shown(text: bytes, stop: int) -> None:
    with pytest.raises(ParseError) as raised:
        parse(text)
    assert raised.value.problem.span == Span(0, stop)


def test_the_name_of_what_is_not_defined_is_marked() -> None:
    text = b"HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT a = f32[2] add(p, missing)\n}\n"
    module = parse_module(Source("m", text))
    assert [text[each.span.start : each.span.end] for each in broken_references(module)] == [b"missing"]


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_long_text_that_no_compiler_laid_out_is_not_looked_through(
    beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT a = f32[2] add(p, missing)\n}\n"
    monkeypatch.setattr(references, "MAX_UNPRINTED", len(text) - beyond)
    assert len(list(broken_references(parse_module(Source("m", text))))) == (not beyond)


@pytest.mark.parametrize("index", [(), (1,), (0, 12), (3, 0, 2)])
def test_operands_have_indices(index: tuple[int, ...]) -> None:
    text = f"(x.1, y{''.join(f'#{number}' for number in index)}), channel_id=1".encode()
    call = parse_call(text, 0, len(text))
    assert call.is_complete
    assert call.operands == (Operand("x.1"), Operand("y", index))


def test_tables_behind_a_header() -> None:
    text = b'FileNames\n1 "a.py"\n2 "b.py"\n\nFunctionNames\n1 "f"\n'
    assert read_tables(text) == {"FileNames": {1: '"a.py"', 2: '"b.py"'}, "FunctionNames": {1: '"f"'}}


@pytest.mark.parametrize(("reduction", "said"), [("sum", ""), ("max", ", unreduced_kind=max")])
def test_the_reduction_of_a_spec_is_said_unless_it_is_a_sum(reduction: str, said: str) -> None:
    spec = PartitionSpec((("x",), ()), unreduced=("y",), reduction=reduction)
    assert str(spec) == f"P('x', None, unreduced={{'y'}}{said})"


@pytest.mark.parametrize("text", ['{"a": [1, "b"]}', '"{\\"a\\": [1, \\"b\\"]}"'])
def test_a_backend_config_is_bare_or_in_a_string(text: str) -> None:
    assert backend_config(text) == {"a": [1, "b"]}


@pytest.mark.parametrize("before", ["", " ", "mesh = "])
def test_an_error_is_placed_where_its_piece_stands(before: str) -> None:
    piece = '<["a"=2, "b"]>'
    text = MlirText(Source("f", f"{before}{piece}\n".encode()))
    with pytest.raises(ParseError) as raised:
        text.read(piece, parse_mesh, 0)
    with pytest.raises(ParseError) as alone:
        parse_mesh(piece)
    assert alone.value.problem.span.start > 0
    assert raised.value.problem.source is text.source
    assert raised.value.problem.span.start == len(before) + alone.value.problem.span.start
