"""Types and layouts of HLO."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import (
    ArrayShape,
    BufferShape,
    HloType,
    Layout,
    OtherType,
    TupleShape,
    parse_layout,
    parse_type,
)
from shardscope.parsers.hlo.types import MAX_NESTING, UNBOUNDED, read_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[]", ArrayShape("f32", ())),
        ("f32[8,16]{1,0}", ArrayShape("f32", (8, 16), "{1,0}")),
        ("f8e4m3fn[2]{0:T(8,128)(4,1)S(1)}", ArrayShape("f8e4m3fn", (2,), "{0:T(8,128)(4,1)S(1)}")),
        ("f32[<=10,?,3]", ArrayShape("f32", (10, UNBOUNDED, 3), None, (True, True, False))),
        ("token[]", ArrayShape("token", ())),
        ("f32[0]{0}", ArrayShape("f32", (0,), "{0}")),
        ("b(s32[4]{0})", BufferShape(ArrayShape("s32", (4,), "{0}"))),
        ("()", TupleShape(())),
        (
            "(f32[], ((), u8[2]))",
            TupleShape((ArrayShape("f32", ()), TupleShape((TupleShape(()), ArrayShape("u8", (2,)))))),
        ),
        ("f32[8,16]{1,0:P(f32[8]{0})}", ArrayShape("f32", (8, 16), "{1,0:P(f32[8]{0})}")),
    ],
)
def test_types(text: str, expected: HloType) -> None:
    assert parse_type(text) == expected
    assert str(expected) == text


def test_remarks_and_blanks_do_not_count() -> None:
    assert parse_type("( f32[ 2, 3 ] {1, 0}, // one\n /*index=1*/ s32[])") == TupleShape(
        (ArrayShape("f32", (2, 3), "{1,0}"), ArrayShape("s32", ()))
    )


@pytest.mark.parametrize(
    "text", ["", "f32", "f32[", "f32[8", "f32[8]{", "(f32[]", "f32[a]", "f32[<=]", "f32[8]]", "f32<8>"]
)
def test_what_is_no_type_is_kept_as_text(text: str) -> None:
    assert parse_type(text) == OtherType(text)
    with pytest.raises(ParseError):
        read_type(text)


def test_nesting_ends_somewhere() -> None:
    deep = "(" * MAX_NESTING + ")" * MAX_NESTING
    assert str(parse_type(deep)) == deep
    assert parse_type(f"({deep})") == OtherType(f"({deep})")
    with pytest.raises(ParseError, match="nested more than"):
        read_type("(" * 100_000)
    # Parentheses in layouts are not nested in each other.
    wide = f"({', '.join(['f32[8]{0:T(8)(2)}'] * 500)})"
    assert parse_type(wide) == TupleShape((ArrayShape("f32", (8,), "{0:T(8)(2)}"),) * 500)
    assert str(parse_type(wide)) == wide


arrays = st.builds(
    ArrayShape,
    st.sampled_from(["f32", "bf16", "pred", "s4", "c128", "f8e5m2fnuz"]),
    st.lists(st.integers(0, 10**9), max_size=5).map(tuple),
    st.sampled_from([None, "{}", "{1,0}", "{2,1,0:T(8,128)(2,1)S(1)}"]),
)


@given(st.recursive(arrays, lambda types: st.lists(types, max_size=4).map(lambda each: TupleShape(tuple(each)))))
def test_printed_types_are_read_back(type_: HloType) -> None:
    assert parse_type(str(type_)) == type_


@pytest.mark.parametrize(
    ("text", "expected", "memory_space"),
    [
        ("{}", Layout(()), 0),
        ("{1,0}", Layout((1, 0)), 0),
        ("{:T(128)S(6)}", Layout((), (("T", ("128",)), ("S", ("6",)))), 6),
        ("{1,0:T(8,128)(2,1)E(4)S(1)}", Layout((1, 0), (("T", ("8,128", "2,1")), ("E", ("4",)), ("S", ("1",)))), 1),
        ("{0:T(1)L(128)SC(0:16)}", Layout((0,), (("T", ("1",)), ("L", ("128",)), ("SC", ("0:16",)))), 0),
        (
            "{1,0:D(D,C)#(u32)*(s8)P((f32[2]{0}))}",
            Layout((1, 0), (("D", ("D,C",)), ("#", ("u32",)), ("*", ("s8",)), ("P", ("(f32[2]{0})",)))),
            0,
        ),
    ],
)
def test_layouts(text: str, expected: Layout, memory_space: int) -> None:
    assert parse_layout(text) == expected
    assert parse_layout(text).memory_space == memory_space


@pytest.mark.parametrize("text", ["", "{", "{1,0", "{1 0}", "{1,0:T}", "{1,0}}", "{:S(1}"])
def test_what_is_no_layout(text: str) -> None:
    with pytest.raises(ParseError):
        parse_layout(text)
