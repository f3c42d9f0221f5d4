"""Broken texts: what is wrong and where, and that all else is still there."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.hlo.problems import MAX_PROBLEMS
from shardscope.parsers.source import Source

from .coverage import untold


def read(text: str) -> HloModule:
    return parse_module(Source("t", text.encode()))


def names(module: HloModule) -> dict[str, list[str]]:
    """The names of the instructions by those of their computations."""
    return {each.name: [instruction.name for instruction in each.instructions] for each in module.computations}


PRINTED = """\
HloModule m, is_scheduled=true

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y), metadata={op_name="jit(f)/add"}
}

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %v = f32[8]{0} get-tuple-element(%p), index=1
  ROOT %t = (s32[], f32[8]{0}) tuple(%i, /*index=1*/%v)
}

ENTRY %main (a: f32[8]) -> f32[] {
  %a = f32[8]{0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[] reduce(%a, %zero), dimensions={0}, to_apply=%add
}
"""

LINES = PRINTED.splitlines()
ALL = {"add": ["x", "y", "sum"], "body": ["p", "i", "v", "t"], "main": ["a", "zero", "r"]}


def damaged(line: int, text: str) -> HloModule:
    """The module with another text in place of a line, counted from 1."""
    return read("\n".join([*LINES[: line - 1], text, *LINES[line:]]) + "\n")


def test_undamaged() -> None:
    module = read(PRINTED)
    assert names(module) == ALL
    assert all(computation.is_printed for computation in module.computations)
    assert not module.problems


def test_a_cut_line_is_shown_and_costs_only_itself() -> None:
    module = damaged(6, "  ROOT %sum = f32[] add(%x, %")
    (problem,) = module.problems
    assert str(problem) == (
        "t:6:30: unexpected end of the text\n"
        "6 |   ROOT %sum = f32[] add(%x, %\n"
        "  |                              ^\n"
        "expected '(', ')', ',', '=', '[', '{', string or word"
    )
    assert names(module) == ALL
    assert module.computations[0].instruction("sum").attributes == {}


@pytest.mark.parametrize(
    ("line", "text", "message", "column"),
    [
        (10, "  %p = (s32[], f32[8", "unexpected '['", 19),
        (10, "  %p = (s32[], f32[8}) parameter(0)", "unexpected '['", 19),
        (10, "  %p = ", "unexpected end of the text", 8),
        (10, "  %p", "unexpected end of the text", 5),
        (11, "  %i = s32[] get tuple element(%p), index=0", "unexpected 'get'", 14),
        (11, "  %i = s32[] get-tuple-element(%p) index=0", "unexpected 'index'", 36),
        (11, "  %i = s32[] get-tuple-element(%p), index", "unexpected end of the text", 42),
        (11, "  %i = s32[] get-tuple-element(%p), index=0, =1", "unexpected '='", 46),
        (11, "  %i = s32[4 get-tuple-element(%p)", "unexpected '['", 11),
        (11, '  %i = s32[] custom-call(%p), a="b', "unexpected '\"'", 33),
        (11, "  \x00\x01", r"unexpected '\x00\x01'", 3),
    ],
)
def test_a_broken_line_costs_only_itself(line: int, text: str, message: str, column: int) -> None:
    module = damaged(line, text)
    (problem,) = module.problems
    assert problem.message == message
    assert problem.source.position(problem.span.start) == (line, column)
    lost = LINES[line - 1].split()[0].removeprefix("%")
    left = {name: [each for each in instructions if each != lost] for name, instructions in ALL.items()}
    assert names(module) in (ALL, left)
    assert module.rows().names == [name for found in names(module).values() for name in found]


def test_a_missing_brace_ends_at_the_next_header() -> None:
    module = damaged(7, "")
    assert names(module) == ALL
    assert [str(problem).splitlines()[0] for problem in module.problems] == ["t:3:1: the computation is not closed"]


def test_instructions_that_lost_their_header_are_still_there() -> None:
    module = damaged(9, "%body (p: (s3")
    assert names(module) == {"add": ALL["add"], "": ALL["body"], "main": ALL["main"]}
    assert [problem.message for problem in module.problems] == [
        "this is no part of an HLO module",
        "an instruction outside of any computation",
    ]


def test_a_cut_off_end() -> None:
    module = read(PRINTED[: PRINTED.index("constant(0)") + 9])
    assert names(module) == ALL | {"main": ["a", "zero"]}
    assert [problem.message for problem in module.problems] == [
        "the computation is not closed",
        "unexpected end of the text",
    ]


@pytest.mark.parametrize("end", ["%add", "%body", "ENTRY"])
def test_a_text_that_ends_before_the_entry(end: str) -> None:
    laid_out = PRINTED.replace("is_scheduled=true", "entry_computation_layout={(f32[8]{0})->f32[]}")
    assert not read(laid_out).problems
    (problem,) = read(laid_out[: laid_out.index(end)]).problems
    assert problem.message == "the text ends before the entry computation"


@pytest.mark.parametrize("layout", ["(f32[8]{0})->f32[]", "(f32[8])->f32[]"])
def test_an_entry_without_its_mark(layout: str) -> None:
    text = PRINTED.replace("ENTRY ", "").replace("is_scheduled=true", f"entry_computation_layout={{{layout}}}")
    assert not read(text).problems
    assert not read(text.replace("ROOT %r = f32[] reduce", "ROOT %r = reduce")).problems


def test_a_cut_off_start() -> None:
    module = read(PRINTED[PRINTED.index("parameter(1)") :])
    assert names(module) == {"": ["sum"], "body": ALL["body"], "main": ALL["main"]}
    assert len(module.problems) == 2


def test_a_broken_header_of_the_module() -> None:
    module = damaged(1, "HloModule m, is_schedu")
    assert names(module) == ALL
    (problem,) = module.problems
    assert problem.source.position(problem.span.start) == (1, 12)


def test_text_between_computations_is_reported_and_left_out() -> None:
    module = damaged(8, "\nwhat is\nthis?\n")
    assert names(module) == ALL
    (problem,) = module.problems
    assert module.source.text(problem.span) == "what is\nthis?"


@pytest.mark.parametrize("before", ["I think\nthat this is it:\n\n```\n", "WARNING: x = 3 (y)\n  at f\n"])
def test_a_module_behind_something_else(before: str) -> None:
    module = read(before + PRINTED + "```\n")
    assert (module.name, names(module)) == ("m", ALL)
    assert module.attributes == {"is_scheduled": "true"}
    first, last = module.problems
    assert (module.source.text(first.span), module.source.text(last.span)) == (before, "```")
    assert str(first).startswith("t:1:1: this is no part of an HLO module")


def test_a_header_without_a_name() -> None:
    module = damaged(1, "HloModule $name, is_scheduled=true")
    assert (module.name, names(module)) == ("", ALL)
    (problem,) = module.problems
    assert problem.source.position(problem.span.start) == (1, 11)
    nothing_else = read("HloModule $name\n\nENTRY e {\n  ROOT p = $type[2] parameter(0)\n}\n")
    assert [each.name for each in nothing_else.computations] == ["e"]
    assert [problem.message for problem in nothing_else.problems] == [
        "this is no part of an HLO module",
        "unexpected '$type'",
    ]


def test_two_modules_one_after_the_other() -> None:
    module = read(PRINTED + "\n" + PRINTED.replace("%main", "%other"))
    assert [computation.name for computation in module.computations].count("other") == 1
    assert [problem.message for problem in module.problems] == ["this is no part of an HLO module"]


@pytest.mark.parametrize("remark", ["/*", "/*index=1", '"', "'", "{", "(", "//", "}"])
@pytest.mark.parametrize("line", [5, 6, 11, 13])
def test_what_is_opened_in_one_line_does_not_swallow_the_next(line: int, remark: str) -> None:
    module = damaged(line, LINES[line - 1] + remark)
    assert names(module) == ALL


def test_a_remark_without_an_end_between_computations() -> None:
    module = damaged(15, "/* what")
    assert names(module) == {"add": ALL["add"], "body": ALL["body"]}
    assert [problem.message for problem in module.problems] == ["the remark has no end"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (4, "  %x{"),
        (4, "   = %x = f32[] parameter(0)"),
        (5, "  %y,"),
        (5, "  %y = f32[] para,"),
        (5, "  %y ROOT "),
        (5, "  %y."),
        (5, "  }}}}}"),
        (5, "  %y = f32[] para}}}}}meter(1)"),
        (5, "  %y = f32[] parameter(1)}"),
        (5, "  */"),
        (11, "  %i = s32[{ROOT "),
        (13, "  ROOT %t = (s32[], f32[8]{0:T(8ROOT "),
        (13, "  ROOT %t = (s32[], /*inde"),
        (17, "  %a = f32[8]{0} parameter(0)), ((((("),
        (18, '  %zero = f32[] constant(0), metadata={op_name="a\\'),
    ],
)
def test_damage_that_once_cost_other_lines(line: int, text: str) -> None:
    lost = LINES[line - 1].removeprefix("  ROOT ").split()[0].removeprefix("%")
    left = [name for instructions in ALL.values() for name in instructions if name != lost]
    assert [name for name in damaged(line, text).rows().names if name != lost] == left


def test_names_that_are_no_text() -> None:
    module = parse_module(Source("t", PRINTED.encode().replace(b"%zero =", b"%ze\xe3o =")))
    assert module.rows().names[-2] == "ze�o"
    assert [problem.message for problem in module.problems] == ["unexpected '�o'"]


def test_rows_between_computations_belong_to_none() -> None:
    lost = "{1}, to_apply=%x\n  %g = $0[] parameter(0)\n  ROOT %h = $0[] negate(%g)\n}\n"
    module = damaged(8, lost)
    assert names(module) == ALL
    assert len(module.rows()) == 10
    assert [each.name for each in module.with_opcode({"parameter", "negate"})] == ["x", "y", "p", "a"]


def test_no_more_problems_than_one_can_read() -> None:
    module = read("HloModule m\n\nENTRY %e () -> f32[] {\n" + "  %x = f32[] add(%y\n" * 5000 + "}\n")
    assert len(module.computations[0].instructions) == 5000
    assert len(module.problems) == MAX_PROBLEMS + 1
    assert module.problems[-1].message == "there are more problems after this one"


def test_nothing_is_left_out() -> None:
    for cut in range(0, len(PRINTED), 7):
        for text in (PRINTED[:cut], PRINTED[cut:], PRINTED[: cut - 3] + PRINTED[cut:]):
            try:
                module = read(text)
            except ParseError:
                continue
            assert untold(module) == []


def test_bytes_that_are_no_text_do_not_move_places() -> None:
    broken = b"  %a = f32[8]{0\xbd\xa5\x9d\xdd x}"
    module = parse_module(Source("t", PRINTED.encode().replace(b"  %a = f32[8]{0} parameter(0)", broken)))
    (problem,) = module.problems
    assert problem.span.end <= module.source.data.index(broken) + len(broken)
    assert str(problem).encode()
    assert untold(module) == []


UNUSUAL = """\
HloModule m
f{
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[]reduce(p, z),
  to_apply={
  a = f32[/* %a = f32[] add(%b), c={ */] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  },
\tdimensions={0\r
}
}
"""
MANY_LINES = """\
HloModule m

%neg (
x: f32[])
->
f32[] {
  %x = f32[]
parameter(0)
  ROOT %y
= f32[]
negate(%x)
}
"""


@pytest.mark.parametrize("text", [UNUSUAL, MANY_LINES])
@pytest.mark.parametrize(
    "broken",
    [
        "%broken (x: f32[]) -> f32[] {\n  %x = f32[ parameter(0\n  ROOT %y = f32[] negate(%x)\n}\n",
        "%broken (x: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  ROOT %y = f32[] negate(%x\n",
    ],
)
def test_a_broken_computation_costs_nothing_of_those_before_it(text: str, broken: str) -> None:
    """Whatever their layout is, of which broken texts are read by their indentation."""
    alone = read(text)
    assert not alone.problems
    module = read(f"{text}\n{broken}")
    assert module.problems
    *before, last = module.computations
    assert last.name == "broken"
    for one, other in zip(alone.computations, before, strict=True):
        assert (one.name, one.span) == (other.name, other.span)
        assert [(each.name, each.span) for each in one.instructions] == [
            (each.name, each.span) for each in other.instructions
        ]


NESTED = """\
HloModule m

ENTRY e {
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  r = f32[] reduce(p, z), dimensions={0}, to_apply={
    a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT s = f32[] add(a, b)
  }
  c = f32[] copy(r)
  ROOT n = f32[] negate(c)
}
"""


@pytest.mark.parametrize("tail", ["", "{", "(", '"', "}", ")"])
@pytest.mark.parametrize(
    "text", [PRINTED, re.sub("(?m)^  ", "    ", PRINTED), NESTED], ids=["printed", "deep", "nested"]
)
def test_wherever_a_line_is_cut_the_others_are_there(text: str, tail: str) -> None:
    """Behind its equals sign, with something that is opened or closed there."""

    def found_in(text: str) -> Counter[str]:
        return Counter(each.name for computation in read(text).computations for each in computation.instructions)

    lines = text.splitlines()
    every = found_in(text)
    for number, line in enumerate(lines):
        head = re.match(r"\s+(?:ROOT )?%?(\w+) =", line)
        if head is None or line.endswith("{"):
            continue
        for cut in range(head.end(), len(line), 3):
            changed = "\n".join([*lines[:number], line[:cut] + tail, *lines[number + 1 :]])
            assert not every - found_in(changed + "\n") - Counter([head[1]]), changed
