"""Each opcode against JAX on CPU in 64 bits: the program before compilation, and after it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardscope.inspector.evaluate.compare import results_of
from shardscope.inspector.evaluate.errors import NotEvaluatedError
from shardscope.inspector.evaluate.interpreter import Interpreter


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("opcodes")
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    program = str(Path(__file__).with_name("opcodes.py"))
    subprocess.run([sys.executable, program, str(made)], check=True, env=environment)
    return made


@pytest.mark.parametrize("stage", ["source", "optimized"])
def test_opcodes(folder: Path, stage: str) -> None:
    failed = {}
    names = sorted(path.name.partition(".")[0] for path in folder.glob(f"*.{stage}.hlo"))
    assert len(names) > 90
    for name in names:
        arrays = np.load(folder / f"{name}.npz")
        inputs = [[arrays[key]] for key in arrays.files if key.startswith("in_")]
        wanted = [arrays[key] for key in arrays.files if key.startswith("out_")]
        text = (folder / f"{name}.{stage}.hlo").read_text()
        try:
            found = results_of(Interpreter(text, 1).run(inputs), len(wanted))
            for (value,), expected in zip(found, wanted, strict=True):
                assert value.shape == expected.shape
                np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-7)
        except (NotEvaluatedError, AssertionError) as error:
            failed[name] = f"{getattr(error, 'place', '')} {error}"[:300]
    assert not failed


ASYNCHRONOUS = """HloModule m

%sum (x: f32[4], y: f32[4]) -> f32[4] {{
  %x = f32[4] parameter(0)
  %y = f32[4] parameter(1)
  ROOT %add = f32[4] add(%x, %y)
}}, execution_thread="sparsecore"

ENTRY %main (a: f32[4], b: f32[4]) -> f32[4] {{
  %a = f32[4] parameter(0)
  %b = f32[4] parameter(1)
  {calls}
  ROOT %done = f32[4] call-done(%last)
}}
"""
STARTED = (
    '%last = ((f32[4], f32[4]), f32[4]) call-start(%a, %b), async_execution_thread="sparsecore", to_apply=%sum',
    '%begun = ((), (), s32[]) call-start(), async_execution_thread="sparsecore", to_apply=%sum\n'
    "  %last = ((f32[4], f32[4]), f32[4]) call-update(%begun, %a, %b)",
    '%begun = ((), (), s32[]) custom-call-start(), async_execution_thread="sparsecore", custom_call_target="any",'
    " called_computations={%sum}\n"
    "  %last = ((f32[4], f32[4]), f32[4]) custom-call-update(%begun, %a, %b)",
)


@pytest.mark.parametrize("calls", STARTED)
def test_an_asynchronous_call_takes_its_operands_at_the_start_or_later(calls: str) -> None:
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    (found,) = Interpreter(ASYNCHRONOUS.format(calls=calls), 1).run([[a], [b]])
    np.testing.assert_array_equal(found, [1, 2, 3, 4])


HIGH_HALF = """HloModule m

ENTRY %main (a: {type}[64], b: {type}[64]) -> {type}[64] {{
  %a = {type}[64] parameter(0)
  %b = {type}[64] parameter(1)
  ROOT %c = {type}[64] mulhi(%a, %b)
}}
"""


@pytest.mark.parametrize(("type", "dtype"), [("u32", np.uint32), ("s32", np.int32), ("u64", np.uint64)])
def test_the_high_half_of_a_product_is_that_of_integers_without_bounds(type: str, dtype: Any) -> None:
    bounds = np.iinfo(dtype)
    a, b = np.random.default_rng(3).integers(bounds.min, bounds.max, (2, 64), dtype, endpoint=True)
    (found,) = Interpreter(HIGH_HALF.format(type=type), 1).run([[a], [b]])
    assert found.tolist() == [(int(x) * int(y)) >> bounds.bits for x, y in zip(a, b, strict=True)]
