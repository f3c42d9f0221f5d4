"""User priorities of the Shardy guide, which JAX cannot spell yet: what is propagated first, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.shardings.conflicts import conflicts
from shardscope.inspector.shardings.explained import why
from shardscope.inspector.shardings.table import values
from shardscope.parsers.source import Source

from .propagating import propagated

# Rows of `a` and columns of `b` are wanted on one axis: the sum can have but one of them.
TEXT = """\
module @jit_f attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(
      %arg0: tensor<8x8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}p{first}, {{}}, {{?}}]>}} loc("a"),
      %arg1: tensor<8x8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}p{second}, {{?}}]>}} loc("b"))
      -> (tensor<8x8x8xf32> {{jax.result_info = "result"}}) {{
    %0 = stablehlo.sine %arg0 : tensor<8x8x8xf32>
    %1 = stablehlo.cosine %arg1 : tensor<8x8x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x8x8xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{{?}}, {{?}}, {{"y"}}p2]> : tensor<8x8x8xf32>
    return %3 : tensor<8x8x8xf32>
  }}
}}
"""


def captured(folder: Path, first: int, second: int) -> Capture:
    text = TEXT.format(first=first, second=second).encode()
    stages = {"stablehlo": text, "sdy": propagated(folder, text)}
    return Capture(stages=tuple(Stage(name, "mlir", Source(name, data)) for name, data in stages.items()))


@pytest.mark.parametrize(
    ("first", "second", "spec", "winner", "loser"),
    [(0, 1, "P('x', None, 'y')", "a", "b"), (1, 0, "P(None, 'x', 'y')", "b", "a")],
)
def test_the_lower_number_is_propagated_first(
    first: int, second: int, spec: str, winner: str, loser: str, tmp_path: Path
) -> None:
    program = Program(captured(tmp_path, first, second))
    total = next(value for value in values(program) if value.name.endswith("add"))
    assert total.spec == spec
    found = {str(each.axis): each for each in why(program, total)}
    assert str(found["x"].origin) == f"argument {winner}"
    # The constraint has the last priority of the three.
    assert str(found["y"].origin) == "with_sharding_constraint"
    assert [step.number for step in found["y"].steps] > [step.number for step in found["x"].steps]
    # At the function of the other argument both have arrived.
    met = conflicts(program)
    assert {str(each.operation) for each in met} == {"cosine" if loser == "b" else "sine"}
    # Which of them is executed would be told by the partitioned program, which is not there.
    assert all(each.chosen is None and not each.rejected for each in met)
    sides = {str(why.origin) for each in met for side in each.undecided for why in side.why}
    assert sides == {f"argument {winner}", f"argument {loser}"}
    (asked,) = (value for value in inspect(program).shardings if value.role == "constraint")
    assert asked.requested == "P(P.UNCONSTRAINED, P.UNCONSTRAINED, 'y', priorities=(None, None, 2))"
