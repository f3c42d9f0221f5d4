"""What lies just within a limit of the parsers is read, and what lies just beyond it is not; and places to a byte."""

from __future__ import annotations

import pytest
from shardscope.parsers import parse
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import Operand, parse_module
from shardscope.parsers.hlo.call import backend_config, parse_call
from shardscope.parsers.hlo.reading import read_tables
from shardscope.parsers.hlo.references import broken_references
from shardscope.parsers.mlir.collectives import parse_pairs
from shardscope.parsers.mlir.locations import MAX_DEPTH, FileLoc, Locations, NameLoc, UnknownLoc
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
