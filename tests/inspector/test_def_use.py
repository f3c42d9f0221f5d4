"""One program in three languages: definitions, uses and the walks along them are the same in each."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from shardscope.inspector.dataflow.mlir import Dataflow
from shardscope.inspector.ir.def_use import DefUse, forward, near
from shardscope.inspector.ir.jaxpr import read_program
from shardscope.inspector.ir.jaxpr_text import JaxprUses, print_jaxpr
from shardscope.parsers import hlo, mlir
from shardscope.parsers.hlo.graph import Uses
from shardscope.parsers.source import Source

EDGES = {
    "tanh": ["sine", "negate"],
    "sine": ["add"],
    "negate": ["add", "multiply"],
    "add": ["multiply"],
    "multiply": [],
}
"""Which operations use which: `tanh` is of the argument, `multiply` is what is returned."""

HLO = """HloModule m
ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4] parameter(0)
  %tanh = f32[4] tanh(%p)
  %sine = f32[4] sine(%tanh)
  %negate = f32[4] negate(%tanh)
  %add = f32[4] add(%sine, %negate)
  ROOT %multiply = f32[4] multiply(%add, %negate)
}
"""

MLIR = """func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<4xf32>
  %1 = stablehlo.sine %0 : tensor<4xf32>
  %2 = stablehlo.negate %0 : tensor<4xf32>
  %3 = stablehlo.add %1, %2 : tensor<4xf32>
  %4 = stablehlo.multiply %3, %2 : tensor<4xf32>
  return %4 : tensor<4xf32>
}
"""

OPERANDS = {"tanh": "a", "sine": "b", "negate": "b", "add": "cd", "multiply": "ed"}


def of_jaxpr() -> tuple[DefUse, Callable[[object], str]]:
    names = dict(zip(OPERANDS, "bcdef", strict=True))
    equations = [
        {"primitive": name, "inputs": list(used), "outputs": [{"name": names[name], "type": "f32[4]"}]}
        for name, used in OPERANDS.items()
    ]
    jaxpr = {"constants": [], "inputs": [{"name": "a", "type": "f32[4]"}], "equations": equations, "outputs": ["f"]}
    program = {"frames": [], "jaxprs": [jaxpr]}
    text = print_jaxpr(read_program(Source("jaxpr", msgspec.json.encode(program))))
    return JaxprUses(text), lambda place: place.equation.primitive


def of_mlir() -> tuple[DefUse, Callable[[object], str]]:
    module = mlir.parse_module(Source("mlir", MLIR.encode()))
    flow = Dataflow(module, module.functions[0])
    return flow, lambda row: flow.rows[row].name.rpartition(".")[2]


def of_hlo() -> tuple[DefUse, Callable[[object], str]]:
    entry = hlo.parse_module(Source("hlo", HLO.encode())).entry
    assert entry is not None
    return Uses(entry), lambda instruction: instruction.opcode


@pytest.fixture(params=[of_jaxpr, of_mlir, of_hlo])
def language(request: pytest.FixtureRequest) -> tuple[DefUse, Callable[[object], str]]:
    return request.param()


@pytest.fixture
def first(language: tuple[DefUse, Callable[[object], str]]) -> object:
    """The operation `tanh`."""
    graph, name = language
    value = (0, "b") if isinstance(graph, JaxprUses) else "tanh" if isinstance(graph, Uses) else graph.results(0)[0]
    found = graph.definition(value)
    assert name(found) == "tanh"
    return found


def test_definitions_and_uses(language: tuple[DefUse, Callable[[object], str]], first: object) -> None:
    graph, name = language
    waiting, met = [first], {}
    while waiting:
        operation = waiting.pop()
        (result,) = graph.results(operation)
        users = [user for user in graph.users_of([result])[result] if name(user) in EDGES]  # a function's return, too
        met[name(operation)] = [name(user) for user in users]
        assert graph.definition(result) == operation
        assert all(result in graph.operands(user) for user in users)
        waiting += users
    assert met == EDGES
    (argument,) = graph.operands(first)
    assert [name(user) for user in graph.users_of([argument])[argument]] == ["tanh"]


def test_walks(language: tuple[DefUse, Callable[[object], str]], first: object) -> None:
    graph, name = language
    waves = forward(graph, graph.results(first), 9, lambda user: name(user) != "multiply")
    told = [{name(user) for users in wave.values() for user in users} & EDGES.keys() for wave in waves]
    assert told == [{"sine", "negate"}, {"add", "multiply"}, {"multiply"}]
    assert len(list(forward(graph, graph.results(first), 1, lambda user: True))) == 1
    (sine,) = (user for user in graph.users_of(graph.results(first))[graph.results(first)[0]] if name(user) == "sine")
    beside = [name(each) for each in near(graph, sine, 1, 9)]
    assert {each for each in beside if each in EDGES} == {"sine", "tanh", "add"}
    assert beside[0] == "sine"
    assert len(near(graph, sine, 9, 2)) == 2


def test_an_instruction_found_by_its_opcode_has_its_uses() -> None:
    module = hlo.parse_module(Source("hlo", HLO.encode()))
    (found,) = module.with_opcode("negate")
    takers, _ = module.graph.users(found)
    assert [(user.name, position) for user, position, _ in takers] == [("add", 1), ("multiply", 1)]
    (result,) = module.with_opcode("multiply")
    assert module.graph.users(result) == ((), {})
