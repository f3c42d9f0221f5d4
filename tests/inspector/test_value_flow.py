"""Sources, ends, uses and origins of values in random programs, against running them with marks for numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from shardscope.inspector.dataflow.graph import AnyUse, Output
from shardscope.inspector.dataflow.hlo import HloFlow, HloValue
from shardscope.inspector.dataflow.meaning import STRAIGHT, Does
from shardscope.inspector.dataflow.sources import Place, ValueFlow
from shardscope.inspector.dataflow.walks import Ends, forward

from .marked_programs import WIDTH, Program, Run

pytestmark = pytest.mark.once

GROUPS = [range(20 * number, 20 * number + 20) for number in range(8)]


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
def test_what_a_value_is_made_of(seeds: range) -> None:
    for program in map(Program, seeds):
        flow = ValueFlow(program.module)
        made, through = program.run(Run()), program.run(Run(stops=False))
        for element, (marks, whole) in enumerate(zip(made, through, strict=True)):
            place = Place(program.root, element)
            sources = [each for each in flow.sources(place) if each.kind != "other"]
            assert {each.instruction.name for each in sources} == {name for name, _ in marks}, program.text
            for each in sources:
                assert (each.instruction.name, each.is_moved) in marks, program.text
                assert (each.kind == "contraction") == each.instruction.name.startswith("dot"), program.text
            names = {name for name, _ in whole}
            for parameter in program.entry.parameters:
                assert flow.depends(place, {parameter}) == (parameter.name in names), program.text


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
def test_what_is_made_of_a_value(seeds: range) -> None:
    for program in map(Program, seeds):
        flow, run = ValueFlow(program.module), Run(least=1)
        made = program.run(run)
        for parameter in program.entry.parameters:
            ends = list(flow.ends(Place(parameter)))
            products = {name for name, taken in run.taken.items() if parameter.name in taken}
            is_output = any(name == parameter.name for marks in made for name, _ in marks)
            found = {each.name for each in ends if each is not None}
            assert found >= products, program.text
            assert (None in ends) >= is_output, program.text
            if " call(" not in program.text:  # which may not use what it is given
                assert (found, None in ends) == (products, is_output), program.text


def is_returned(flow: HloFlow, start: HloValue) -> bool:
    """Return whether a value, or one that is computed from it, is a result of the program."""
    reach = forward(flow, [start], ~STRAIGHT, keeps=lambda use: use.instruction.opcode != "add-dependency")
    return bool(reach.outputs)


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
def test_uses_lead_to_the_results(seeds: range) -> None:
    for program in map(Program, seeds):
        flow = HloFlow(program.module)
        made = {name for marks in program.run(Run(least=1, stops=False), by_element=True) for name, _ in marks}
        for parameter in program.entry.parameters:
            for n in range(WIDTH if parameter.name.startswith("t") else 1):
                value = HloValue(parameter, (n,) if parameter.name.startswith("t") else ())
                assert is_returned(flow, value) == (f"{parameter.name}:{n}" in made), (value, program.text)


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
def test_origins_are_where_the_same_numbers_were_first(seeds: range) -> None:
    for program in map(Program, seeds):
        flow = HloFlow(program.module)
        for element, marks in enumerate(program.run(Run(stops=False, moves=True), by_element=True)):
            origin = flow.origin(HloValue(program.root, (element,)))
            if origin is None:
                assert " while(" in program.text, program.text
            elif origin.instruction.opcode != "conditional":
                name = f"{origin.instruction.name}:{origin.path[0] if origin.path else 0}"
                assert marks == {(name, True)}, (origin, program.text)


@pytest.mark.parametrize("seeds", GROUPS, ids=str)
def test_what_a_loop_does_not_change_is_what_it_begins_with(seeds: range) -> None:
    for program in map(Program, seeds):
        flow = HloFlow(program.module)
        for loop in (step for step in program.main.steps if step.opcode == "while"):
            body, begin = loop.of[0], loop.operands[0]
            for n, part in enumerate(body.steps[-1].operands):
                same = part.opcode == "get-tuple-element" and part.operands[0] is body.inputs[0] and part.element == n
                found, expected = (
                    flow.origin(HloValue(program.instruction(step.name), (n,))) for step in (loop, begin)
                )
                assert found == (expected if same else None), (loop.name, n, program.text)


class _Numbers:
    """A graph of numbers, random: some are returned, some end in a use, which tells its number."""

    def __init__(self, chance: random.Random, size: int) -> None:
        self.after_of = [[chance.randrange(size) for _ in range(chance.choice((0, 1, 1, 2)))] for _ in range(size)]
        self.ended = [chance.random() < 0.2 for _ in range(size)]
        self.returned, self.unknown = ([chance.random() < 0.1 for _ in range(size)] for _ in range(2))

    def uses(self, value: int, *, carried: bool = False) -> Iterator[_NumberUse | int | Output | None]:
        yield from ([None] if self.unknown[value] else [])
        yield from ([Output((value,))] if self.returned[value] else [])
        yield from ([_NumberUse(value, is_end=True)] if self.ended[value] else [])
        for number, each in enumerate(self.after_of[value]):
            yield each if number % 2 else _NumberUse(each, is_end=False)

    def does(self, use: _NumberUse) -> Does:
        return Does.CONTRACT if use.is_end else Does.FORWARD

    def after(self, use: _NumberUse) -> tuple[int]:
        return (use.number,)


class _NumberUse(AnyUse, frozen=True):
    number: int
    is_end: bool


def test_ends_are_those_of_walks_from_each_value() -> None:
    chance = random.Random(0)
    for size in (1, 2, 5, 30, 200) * 10:
        graph = _Numbers(chance, size)

        def told(use: _NumberUse | Output | None) -> list[object]:
            return [None if use is None else use.path if isinstance(use, Output) else use.number]

        ends = Ends(graph, Does.FORWARD, told)
        for value in chance.sample(range(size), size):
            reach = forward(graph, [value], Does.FORWARD)
            unknown = () if reach.complete else (None,)
            assert ends.of(value) == {each for use in (*reach.ends, *reach.outputs, *unknown) for each in told(use)}
