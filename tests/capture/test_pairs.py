"""Operations of a module that Shardy has changed, each with the same operation of another module."""

from __future__ import annotations

import jax
import pytest
from jaxlib.mlir import ir
from shardscope.inspector.capture.worker import modules
from shardscope.inspector.capture.worker.dumped import pairs

LAYERS = 40
SIZE = 8

MATRIX, MASK, ROW = (f"tensor<{SIZE}x{SIZE}xf32>", f"tensor<{SIZE}x{SIZE}xi1>", f"tensor<{SIZE}xi32>")
SQUARE = f"tensor<{SIZE}x{SIZE}xi32>"

LAYER = f"""
    %rows{{n}} = stablehlo.iota dim = 0 : {ROW}
    %row{{n}} = stablehlo.broadcast_in_dim %rows{{n}}, dims = [0] : ({ROW}) -> {SQUARE}
    %columns{{n}} = stablehlo.iota dim = 0 : {ROW}
    %column{{n}} = stablehlo.broadcast_in_dim %columns{{n}}, dims = [1] : ({ROW}) -> {SQUARE}
    %mask{{n}} = stablehlo.compare GE, %row{{n}}, %column{{n}} : ({SQUARE}, {SQUARE}) -> {MASK}
    %q{{n}} = stablehlo.dot %x{{n}}, %arg{{a}} : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %k{{n}} = stablehlo.dot %x{{n}}, %arg{{b}} : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %scores{{n}} = stablehlo.multiply %q{{n}}, %k{{n}} : {MATRIX}
    %seen{{n}} = stablehlo.select %mask{{n}}, %scores{{n}}, %zero : {MASK}, {MATRIX}
    %again{{n}} = stablehlo.select %mask{{n}}, %q{{n}}, %seen{{n}} : {MASK}, {MATRIX}
    %x{{m}} = stablehlo.dot %again{{n}}, %arg{{c}} : ({MATRIX}, {MATRIX}) -> {MATRIX}
"""

LAYERED = f"""
module {{
  func.func @main({", ".join(f"%arg{n}: {MATRIX}" for n in range(3 * LAYERS))}, %x0: {MATRIX}) -> {MATRIX} {{
    %zero = stablehlo.constant dense<0.0> : {MATRIX}
    {"".join(LAYER.format(n=n, m=n + 1, a=3 * n, b=3 * n + 1, c=3 * n + 2) for n in range(LAYERS))}
    return %x{LAYERS} : {MATRIX}
  }}
}}
"""


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="Shardy of JAX 0.7 has no such pass")
def test_layers_with_masks_that_shardy_copies() -> None:
    """Its splitter copies the masks, which are alike in all layers, for each use; products have their own arguments."""
    with modules.context(), ir.Location.unknown():
        module, earlier = ir.Module.parse(LAYERED), ir.Module.parse(LAYERED)
        modules.run(module, modules.pass_of("sdy-constant-or-scalar-splitter"))
        wanted = list(modules.find(modules.main_of(module), lambda name: name != "sdy.constant"))
        assert len([each for each in wanted if each.name == "stablehlo.iota"]) > 2 * LAYERS
        found = pairs(module, earlier)
        left = [each for each in wanted if each not in found and each.name not in ("func.func", "func.return")]
        assert not left
        for operation, source in found.items():
            assert operation.name == source.name
            if operation.name == "stablehlo.dot":
                assert argument(operation) == argument(source)
            if operation.name in ("stablehlo.multiply", "stablehlo.select"):
                # Those of a layer are made of its products.
                made_of = [each.owner.operation for each in operation.operands if isinstance(each, ir.OpResult)]
                its = [each.owner.operation for each in source.operands if isinstance(each, ir.OpResult)]
                products = [
                    (one, other) for one, other in zip(made_of, its, strict=True) if one.name == "stablehlo.dot"
                ]
                assert all(found[one] == other for one, other in products)


def argument(operation: ir.Operation) -> int:
    """The number of the function's argument that is multiplied by."""
    return int(ir.BlockArgument(operation.operands[1]).arg_number)


SUMS = 6

SHIFTED = """
    %constant{n} = stablehlo.constant dense<{n}.0> : MATRIX
    %x{n} = stablehlo.add %arg0, %constant{n} : MATRIX
    %y{n} = sdy.sharding_constraint %x{n} <@mesh, [{{"x"}}, {{}}]> : MATRIX
    %z{n} = stablehlo.sine %y{n} : MATRIX
""".replace("MATRIX", MATRIX)

ADDED = SHIFTED.replace("sine %y", "sine %added").replace(
    "    %z", f"    %added{{n}} = sdy.reshard %y{{n}} <@mesh, [{{{{}}}}, {{{{}}}}]> : {MATRIX}\n    %z"
)


def shifted(lines: str) -> str:
    """A module with a sum for each number, all of one argument and of constants that differ."""
    body, results = "".join(lines.format(n=n) for n in range(SUMS)), ", ".join(f"%z{n}" for n in range(SUMS))
    types = ", ".join([MATRIX] * SUMS)
    head = 'sdy.mesh @mesh = <["x"=2]>'
    return f"module {{ {head} func.func @main(%arg0: {MATRIX}) -> ({types}) {{ {body} return {results} : {types} }} }}"


def test_values_that_differ_in_constants_alone() -> None:
    """Each with the constraint on it, also where others are added, which are in no pair."""
    with modules.context(), ir.Location.unknown():
        module, earlier = ir.Module.parse(shifted(ADDED)), ir.Module.parse(shifted(SHIFTED))
        found = pairs(module, earlier)
        for operation in modules.find(modules.main_of(module), lambda name: name.startswith(("stablehlo.", "sdy."))):
            if operation.name == "sdy.reshard":
                assert operation not in found
            elif operation.name != "stablehlo.constant":
                assert constant(found[operation]) == constant(operation)


def constant(operation: ir.Operation) -> ir.Attribute:
    """The constant that the value is made of."""
    while operation.name != "stablehlo.constant":
        operation = operation.operands[-1].owner.operation
    return operation.attributes["value"]
