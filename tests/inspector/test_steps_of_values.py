"""Steps of values through asynchronous calls, fusions and tuples, and arrays that are zero but for a part."""

from __future__ import annotations

import re

import pytest
from shardscope.inspector.dataflow.hlo import HloUse, HloValue
from shardscope.inspector.dataflow.sources import MAX_STEPS, MAX_VALUES, Place, ValueFlow
from shardscope.inspector.dataflow.work import InstructionWork
from shardscope.parsers.hlo import Instruction, parse_module
from shardscope.parsers.source import Source


def flow_of(body: str, computations: str = "") -> tuple[ValueFlow, dict[str, Instruction]]:
    *lines, last = [line.strip() for line in body.strip().splitlines()]
    text = "\n  ".join([*lines, f"ROOT {last}"])
    module = parse_module(
        Source("m", f"HloModule m\n\n{computations}ENTRY %main () -> f32[4] {{\n  {text}\n}}\n".encode())
    )
    return ValueFlow(module), {each.name: each for part in module.computations for each in part.instructions}


def sources(flow: ValueFlow, place: Place) -> set[tuple[str, bool]]:
    return {(each.instruction.name, each.is_moved) for each in flow.sources(place)}


CALLED = """%called (p: f32[4], q: f32[4]) -> TYPE {
  %p = f32[4] parameter(0)
  %q = f32[4] parameter(1)
  ROOT %r = TYPE STEP
}

"""


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("copy(%p)", {("a", True)}),
        ("copy(%q)", {("b", True)}),
        ("negate(%q)", {("b", False)}),
        ("add(%p, %q)", {("a", False), ("b", False)}),
    ],
)
@pytest.mark.parametrize(("begins", "ends"), [("call-start", "call-done"), ("fusion-start", "fusion-done")])
def test_what_an_asynchronous_call_gives_is_what_is_called(
    step: str, expected: set[tuple[str, bool]], begins: str, ends: str
) -> None:
    flow, named = flow_of(
        f"""%a = f32[4] parameter(0)
        %b = f32[4] parameter(1)
        %start = ((f32[4], f32[4]), f32[4], s32[]) {begins}(%a, %b), calls=%called
        %done = f32[4] {ends}(%start)
        %after = f32[4] copy(%done)""",
        CALLED.replace("TYPE", "f32[4]").replace("STEP", step),
    )
    assert sources(flow, Place(named["after"])) == sources(flow, Place(named["done"])) == expected
    for name in "ab":
        assert flow.depends(Place(named["done"]), {named[name]}) == (name in {each for each, _ in expected})


@pytest.mark.parametrize(("element", "source"), [(0, "a"), (1, "b")])
def test_elements_of_what_an_asynchronous_call_gives(element: int, source: str) -> None:
    flow, named = flow_of(
        """%a = f32[4] parameter(0)
        %b = f32[4] parameter(1)
        %start = ((f32[4], f32[4]), (f32[4], f32[4]), s32[]) call-start(%a, %b), to_apply=%called
        %done = (f32[4], f32[4]) call-done(%start)
        %part = f32[4] get-tuple-element(%done), index=INDEX""".replace("INDEX", str(element)),
        CALLED.replace("TYPE", "(f32[4], f32[4])").replace("STEP", "tuple(%p, %q)"),
    )
    assert sources(flow, Place(named["part"])) == {(source, True)}
    ends = {name: list(flow.ends(Place(named[name]))) for name in "pq"}
    assert ends == {name: [None] if name == "pq"[element] else [] for name in "pq"}


@pytest.mark.parametrize("operands", ["%near, %far", "%far, %near"])
def test_what_is_near_is_found_beside_what_many_steps_lead_to(operands: str) -> None:
    chain = [f"%c{number} = f32[4] negate(%c{number - 1})" for number in range(1, MAX_VALUES + 2)]
    flow, named = flow_of(
        "\n".join(
            (
                "%a = f32[4] parameter(0)",
                "%c0 = f32[4] parameter(1)",
                *chain,
                "%near = f32[4] negate(%a)",
                f"%far = f32[4] negate(%c{len(chain)})",
                f"%done = f32[4] add({operands})",
            )
        )
    )
    assert flow.depends(Place(named["done"]), {named["a"]})


def test_a_call_of_what_is_not_in_the_text_is_taken_to_be_made_of_its_operands() -> None:
    flow, named = flow_of(
        """%a = f32[4] parameter(0)
        %start = ((f32[4]), f32[4], s32[]) call-start(%a), to_apply=%lost
        %done = f32[4] call-done(%start)"""
    )
    assert flow.depends(Place(named["done"]), {named["a"]})


@pytest.mark.parametrize("operands", ["%a", "%a, %b", "%b, %a"])
@pytest.mark.parametrize("element", [0, 1])
def test_parts_of_combined_gathers_are_by_operand(operands: str, element: int) -> None:
    """Of one operand the two parts are what goes in and what comes out."""
    flow, named = flow_of(
        f"""%a = f32[4] parameter(0)
        %b = f32[4] parameter(1)
        %start = (f32[4], f32[4]) all-gather-start({operands}), dimensions={{0}}
        %part = f32[4] get-tuple-element(%start), index={element}"""
    )
    names = re.findall(r"%(\w)", operands)
    expected = names[element] if len(names) > 1 else names[0]
    assert sources(flow, Place(named["part"])) == {(expected, True)}
    (use,) = flow.flow.uses(HloValue(named[expected]))
    assert isinstance(use, HloUse)
    assert flow.flow.after(use) == (HloValue(named["start"], (names.index(expected),) if len(names) > 1 else ()),)


FILLED = """%filled (p: f32[2], i: s32[]) -> f32[4] {
  %p = f32[2] parameter(0)
  %i = s32[] parameter(1)
  %zero = f32[] constant(VALUE)
  %zeros = f32[4] broadcast(%zero), dimensions={}
  ROOT %u = f32[4] dynamic-update-slice(%zeros, %p, %i)
}

"""


@pytest.mark.parametrize("after", ["copy", "transpose", "negate"])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize(
    ("value", "is_zero"), [("0", True), ("-0", True), ("0.0", True), ("1", False), ("1e-30", False), ("nan", False)]
)
def test_parts_that_a_fusion_writes_into_zeros(value: str, is_zero: bool, calls: int, after: str) -> None:
    """Known where nothing else calls what is fused."""
    fusions = [f"%f{number} = f32[4] fusion(%a, %i), kind=kLoop, calls=%filled" for number in range(calls)]
    flow, named = flow_of(
        "\n".join(["%a = f32[2] parameter(0)", "%i = s32[] parameter(1)", *fusions, f"%r = f32[4] {after}(%f0)"]),
        FILLED.replace("VALUE", value),
    )
    assert flow.is_placed(Place(named["r"])) == (is_zero and calls == 1 and after != "negate")
    assert not flow.is_placed(Place(named["a"]))


ZEROS = """%zeros () -> f32[4] {
  %zero = f32[] constant(0)
  ROOT %b = f32[4] broadcast(%zero), dimensions={}
}

"""


@pytest.mark.parametrize(
    ("base", "is_placed"),
    [
        ("fusion(), kind=kLoop, calls=%zeros", True),
        ("broadcast(%k), dimensions={}", True),
        ("constant({0, 0, 0, 0})", True),
        ("constant({0, 0, 1, 0})", False),
        ("parameter(2)", False),
        ("add(%c, %c)", False),  # what is computed is not followed
        ("dynamic-update-slice(%c, %a, %i)", False),
        ("all-reduce(%c), to_apply=%zeros", True),
    ],
)
def test_what_a_part_is_written_into(base: str, is_placed: bool) -> None:
    flow, named = flow_of(
        f"""%a = f32[2] parameter(0)
        %i = s32[] parameter(1)
        %k = f32[] constant(0)
        %c = f32[4] constant({{0, 0, 0, 0}})
        %z = f32[4] {base}
        %u = f32[4] dynamic-update-slice(%z, %a, %i)""",
        ZEROS,
    )
    assert flow.is_placed(Place(named["u"])) == is_placed


@pytest.mark.parametrize("copies", [0, 1, MAX_STEPS - 2, MAX_STEPS - 1, MAX_STEPS, 3 * MAX_STEPS])
def test_zeros_are_followed_through_copies_up_to_a_limit(copies: int) -> None:
    steps = "\n".join(f"%z{number + 1} = f32[4] copy(%z{number})" for number in range(copies))
    flow, named = flow_of(
        f"""%a = f32[2] parameter(0)
        %i = s32[] parameter(1)
        %z0 = f32[4] constant({{0, 0, 0, 0}})
        {steps}
        %u = f32[4] dynamic-update-slice(%z{copies}, %a, %i)"""
    )
    assert flow.is_placed(Place(named["u"])) == (copies < MAX_STEPS)


@pytest.mark.parametrize(
    ("opcode", "data"), [("dynamic-slice", "a"), ("add-dependency", "a"), ("add", "ab"), ("select", "ab")]
)
def test_indices_and_predicates_are_no_elements_of_a_result(opcode: str, data: str) -> None:
    operands = {"select": "%p, %a, %b", "dynamic-slice": "%a, %i", "add-dependency": "%a, %b"}.get(opcode, "%a, %b")
    flow, named = flow_of(
        f"""%a = f32[4] parameter(0)
        %b = f32[4] parameter(1)
        %i = s32[] parameter(2)
        %p = pred[4] parameter(3)
        %r = f32[4] {opcode}({operands})"""
    )
    taken = [maker and maker.name for maker, _ in InstructionWork(flow.module).data(named["r"])]
    assert taken == list(data)


@pytest.mark.parametrize("target", ["my_matmul", "__cublas$GEMM", "cudnn$convForward", "a_dot_b", "Sort", ""])
def test_calls_of_libraries_that_contract_are_known_by_their_names(target: str) -> None:
    flow, named = flow_of(f'%a = f32[4] parameter(0)\n%r = f32[4] custom-call(%a), custom_call_target="{target}"')
    is_contraction = target not in ("Sort", "")
    assert flow.work.of(named["r"]) == ("contraction" if is_contraction else "other")
    [source] = flow.sources(Place(named["r"]))
    assert (source.kind, source.instruction, source.is_moved) == (
        "contraction" if is_contraction else "other",
        named["r"],
        True,
    )
