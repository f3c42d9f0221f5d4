"""Where shardings meet that do not go together."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.why_lines import conflict_lines
from shardscope.inspector.shardings.conflicts import conflicts, conflicts_of
from shardscope.inspector.shardings.table import borders, values

from tests.conftest import SampleCapture

_hlo = pytest.importorskip("jaxlib._hlo")

SCRIPT = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()[:8]).reshape(8), ("x",))


def like(spec, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


def product(a, b):
    return a @ b


product_inputs = like(P("x", None), 8, 16), like(P(None, "x"), 16, 8)


def agreeing(a, b):
    return a @ b


agreeing_inputs = like(P("x", None), 8, 16), like(P(None, None), 16, 8)


def split(a):
    return jnp.tanh(a.reshape(2, 8, 4))


split_inputs = (like(P("x", None), 16, 4),)


def rows_of_both(a, b):
    return jax.lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", None)))


rows_of_both_inputs = like(P("x", None), 16, 32), like(P("x", None), 32, 8)

cube = Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("x", "y", "z"))


def crossed(a):
    turned = jnp.swapaxes(a, 0, -1)
    product = jnp.einsum("bij,bkj->bik", turned, a)
    return jnp.maximum(product, jax.lax.with_sharding_constraint(turned, NamedSharding(cube, P(None, "z", "x"))))


crossed_inputs = (
    jax.ShapeDtypeStruct((16, 16, 16), jnp.float32, sharding=NamedSharding(cube, P(None, ("y", "z"), None))),
)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conflicts") / "program.py"
    path.write_text(SCRIPT)
    return path


def captured(script: Path, function: str) -> Program:
    *_, found = capture(Request(f"{script}:{function}", live=False))
    assert found.complete, found.failure
    return Program(found)


def test_one_axis_for_two_dimensions(script: Path) -> None:
    """x cuts the rows of a and the columns of b: the product can have it once, and one of them loses."""
    found = captured(script, "product")
    (conflict,) = conflicts(found)
    # Both values that it is about tell of it, and no other.
    every = (*borders(found), *values(found))
    about = {value.value for value in every if conflicts_of(found, value)}
    assert about == {"%arg0" if conflict.factor == "i" else "%arg1", "%0"}
    assert {each for value in every for each in conflicts_of(found, value)} == {conflict}
    assert (str(conflict.operation), conflict.rule) == ("dot_general", "ik,kj->ij")
    (lost,) = conflict.rejected
    assert conflict.chosen is not None
    losing = {"i": "a dim 0", "j": "b dim 1"}
    assert str(conflict.chosen.value) == f"%0 (dot_general) dim {'ij'.index(conflict.factor)}"
    assert str(lost.value) == losing[conflict.factor]
    (taken,) = conflict.chosen.elsewhere
    assert str(taken.origin) in ("argument a", "argument b")
    lines = list(conflict_lines(conflict, inspect(found)))
    assert lines[0].endswith(f"conflicting shardings for {conflict.factor}")
    assert "chosen" in lines[1]
    assert "rejected" in lines[2]


DOT = re.compile(r"= f32\[(\d+),(\d+)\]\S* dot\(f32\[(\d+),(\d+)\]\S* \S+ f32\[(\d+),(\d+)\]")


@pytest.mark.parametrize("function", ["product", "rows_of_both"])
def test_what_is_chosen_is_what_the_compiled_product_multiplies(script: Path, function: str) -> None:
    found = captured(script, function)
    partitioned = found.stage("hlo-spmd")
    assert partitioned is not None
    module = _hlo.hlo_module_from_text(partitioned.source.text())
    options = _hlo.HloPrintOptions()
    options.print_operand_shape = True
    (sizes,) = DOT.findall(module.to_string(options))
    executed = dict(zip("ijikkj", map(int, sizes), strict=True))
    whole = {"product": {"i": 8, "j": 8, "k": 16}, "rows_of_both": {"i": 16, "j": 8, "k": 32}}[function]
    (conflict,) = conflicts(found)
    parts = whole[conflict.factor] // executed[conflict.factor]
    assert conflict.chosen is not None
    assert conflict.undecided == ()
    assert 8 ** len(conflict.chosen.axes) == parts
    assert all(8 ** len(side.axes) != parts for side in conflict.rejected)
    # What is gathered is what lost; of the product of rows it is the second operand.
    if function == "rows_of_both":
        assert [str(side.value) for side in conflict.rejected] == ["b dim 0"]


def test_a_size_that_another_axis_explains_decides_nothing(script: Path) -> None:
    """Rows and columns cannot both be on x: the compiled product swaps two axes of its operand in front of it."""
    found = captured(script, "crossed")
    partitioned = found.stage("hlo-spmd")
    assert partitioned is not None
    entry = _hlo.hlo_module_from_text(partitioned.source.text()).computations()[-1]
    (product,) = (each for each in entry.instructions() if "dot(" in each.to_string())
    assert "collective-permute" in product.operands()[0].name
    about = {conflict.factor: conflict for conflict in conflicts(found) if str(conflict.operation) == "dot_general"}
    assert about["l"].chosen is None
    assert about["l"].rejected == ()
    assert len(about["l"].undecided) == 2


def test_no_conflict_where_all_agree(script: Path, sample: SampleCapture) -> None:
    assert conflicts(captured(script, "agreeing")) == ()
    assert conflicts(Program(sample("predict:predict"))) == ()


def test_sub_axes(script: Path) -> None:
    """Sixteen rows on eight devices, seen as two times eight: parts of x cut both."""
    found = captured(script, "split")
    specs = {value.name: value.spec for value in values(found)}
    assert specs["reshape"] == specs["tanh"] == "P('x:(1)2', 'x:(2)4', None)"
    output = next(value for value in borders(found) if value.role == "output")
    if jax.__version_info__ < (0, 10):  # where `result.sharding` is cut so, too
        assert output.spec == specs["tanh"]
        return
    # XLA gives no parts of axes to what leaves the program.
    assert (output.spec, str(output.local_type)) == ("P(None, None, None)", "f32[2,8,4]")
