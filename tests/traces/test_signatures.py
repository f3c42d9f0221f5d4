"""What programs are told apart by: JAX's own numbers with a type have no shape."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from shardscope.inspector.capture.worker.tracing.signatures import _type


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="older JAX has no such numbers")
def test_a_number_with_a_type() -> None:
    from jax._src.literals import TypedInt

    number = TypedInt(3, np.dtype("int32"))
    assert _type(number) == _type(TypedInt(4, np.dtype("int32")))
    assert _type(number) != _type(TypedInt(3, np.dtype("int64")))
