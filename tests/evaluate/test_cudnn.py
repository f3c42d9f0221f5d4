"""Convolutions of cuDNN with what XLA fuses into them."""

from __future__ import annotations

import numpy as np
import pytest
from shardscope.inspector.evaluate.errors import NotEvaluatedError
from shardscope.inspector.evaluate.interpreter import Interpreter

pytestmark = pytest.mark.once

TEXT = """HloModule m

ENTRY e {
  x = f32[2,3,4,5] parameter(0)
  w = f32[6,1,1,5] parameter(1)
  b = f32[6] parameter(2)
  s = f32[2,3,4,6] parameter(3)
  c = (f32[2,3,4,6], u8[0]) custom-call(x, w, b, s), window={size=1x1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBiasActivationForward", backend_config={"cudnn_conv_backend_config":{"activation_mode":"MODE","conv_result_scale":3,"side_input_scale":0.5,"leakyrelu_alpha":0}}
  ROOT r = f32[2,3,4,6] get-tuple-element(c), index=0
}
"""  # noqa: E501


def test_bias_side_input_and_activation() -> None:
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 4, 5), (6, 1, 1, 5), (6,), (2, 3, 4, 6))
    x, w, b, s = inputs = [rng.standard_normal(shape) for shape in shapes]
    before = 3 * x @ w[:, 0, 0].T + b + s / 2
    for mode, wanted in (("kNone", before), ("kRelu", np.maximum(before, 0)), ("kRelu6", np.clip(before, 0, 6))):
        (found,) = Interpreter(TEXT.replace("MODE", mode), 1).run([[each] for each in inputs])
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    with pytest.raises(NotEvaluatedError, match="activation kSwish"):
        Interpreter(TEXT.replace("MODE", "kSwish"), 1).run([[each] for each in inputs])
