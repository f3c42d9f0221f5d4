"""PartitionSpecs and array types as JAX writes them, read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.parsers.errors import ParseError
from shardscope.parsers.sharding_syntax.jax_arrays import ArrayType, PartitionSpec, parse_array_type, parse_spec

NAMES = st.text("abxyz_'\"\\ é", min_size=1, max_size=4)
AXES = st.lists(NAMES, max_size=3, unique=True).map(tuple)


@given(st.lists(st.one_of(st.none(), AXES), max_size=4), AXES, AXES)
def test_a_spec_reads_as_it_prints(
    entries: list[tuple[str, ...] | None], unreduced: tuple[str, ...], reduced: tuple[str, ...]
) -> None:
    spec = PartitionSpec(tuple(entries), unreduced, reduced)
    assert parse_spec(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("PartitionSpec('x', None)", (("x",), ())),
        ("P(('a', 'b'),)", (("a", "b"),)),
        ("P(('a',), ())", (("a",), ())),
        ("PartitionSpec(PartitionSpec.UNCONSTRAINED, 'x')", (None, ("x",))),
        ("P()", ()),
    ],
)
def test_spellings(text: str, entries: tuple[tuple[str, ...] | None, ...]) -> None:
    assert parse_spec(text).entries == entries


def test_states() -> None:
    assert parse_spec("P(None, unreduced={'y'}, unreduced_kind=max)").reduction == "max"
    assert parse_spec("P(None, unreduced=frozenset({'y'}))") == PartitionSpec(((),), ("y",))
    assert parse_spec("P(reduced={'y', 'x'})").reduced == ("y", "x")


def test_types() -> None:
    assert parse_array_type("f32[8@x,16@(y,z)]{V:w}") == ArrayType("f32", (8, 16), (("x",), ("y", "z")), ("w",))
    assert parse_array_type("key<fry>[]") == ArrayType("key<fry>", (), ())
    assert parse_array_type("bf16[b,2]{U:(x,y),R:z}").unreduced == ("x", "y")
    assert parse_array_type("bf16[b,2]").shape is None
    assert parse_array_type("i8[3,2]").shape == (3, 2)
    assert parse_array_type("f32[2]{x,y}").varying == ("x", "y")  # as before JAX 0.8


@pytest.mark.parametrize("text", ["P('x'", "P(x)", "P('x',,)", "__import__('os')", "P(a='x')"])
def test_what_is_no_spec(text: str) -> None:
    with pytest.raises(ParseError):
        parse_spec(text)


@pytest.mark.parametrize("text", ["f32", "Ref{f32[2]}", "f32[2", "f32[2@]", ""])
def test_what_is_no_array(text: str) -> None:
    with pytest.raises(ParseError):
        parse_array_type(text)
