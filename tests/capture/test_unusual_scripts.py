"""Scripts that do to Python, and to JAX, what JAX takes."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture

START = "import jax, jax.numpy as jnp\n"
END = "\n@jax.jit\ndef fn(x): return x * 2\ninputs = (jnp.ones((8,)),)\n"

CHECKING = """
import dataclasses, jax, jax.numpy as jnp
@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    w: jax.Array
    b: jax.Array
    def __post_init__(self):
        if not isinstance(self.w, jax.Array):
            raise RuntimeError(f"w is {type(self.w)}")
        assert self.w.shape[0] == self.b.shape[0]
@jax.jit
def fn(p, x):
    return Params(p.w * 2, p.b + (x @ p.w).sum(0)), x
inputs = (Params(jnp.ones((8, 8)), jnp.ones((8,))), jnp.ones((4, 8)))
"""

ORDERED = """
import jax, jax.numpy as jnp
from jax.experimental import io_callback
@jax.jit
def fn(x):
    jax.debug.print("x {}", x.sum(), ordered=True)
    y = io_callback(lambda v: v, jax.ShapeDtypeStruct((), jnp.float32), x.sum(), ordered=True)
    def body(c, v):
        jax.debug.print("c {}", c, ordered=True)
        return c + v, c
    return jax.lax.scan(body, y, x)
inputs = (jnp.ones((8,)),)
"""


def captured(folder: Path, text: str, **options: object) -> Capture:
    (folder / "script.py").write_text(text)
    *_, last = capture(Request(f"{folder}/script.py:fn", **options))  # type: ignore[arg-type]
    return last


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 itself makes them of placeholders")
def test_classes_that_look_at_their_leaves(tmp_path: Path) -> None:
    last = captured(tmp_path, CHECKING)
    assert last.complete, last.failure
    assert [value.path for value in last.arguments] == ["p.w", "p.b", "x"]
    assert [value.path for value in last.outputs] == ["result[0].w", "result[0].b", "result[1]"]
    assert last.execution is not None
    assert [(each.minimum, each.maximum) for each in last.execution.outputs] == [(2, 2), (33, 33), (1, 1)]


def test_ordered_effects_for_a_target(tmp_path: Path) -> None:
    last = captured(tmp_path, ORDERED, target="tpu:v5p:2x2x1")
    if last.failure is not None and last.failure.kind == "usage":
        pytest.skip(last.failure.message)
    assert last.complete, last.failure
    assert sum("was removed" in message.text for message in last.messages) == 3


@pytest.mark.cold
@pytest.mark.parametrize(
    "choice",
    [
        "import os; os.environ['JAX_PLATFORMS'] = 'tpu'\n" + START,
        START + "jax.config.update('jax_platforms', 'cuda,cpu')\njax.config.update('jax_platform_name', 'gpu')\n",
    ],
)
def test_other_platforms_are_answered_by_fakes(tmp_path: Path, choice: str) -> None:
    last = captured(tmp_path, choice + END, live=False)
    assert last.complete, last.failure
    assert last.subject is not None
    assert last.subject.platform == "cpu"
    assert any("was kept at 'cpu'" in message.text for message in last.messages)


@pytest.mark.cold
def test_streams_hooks_loggers_and_exits_of_its_own(tmp_path: Path) -> None:
    odd = """
import atexit, logging, sys
class Tee:
    def write(self, text): pass
sys.stderr, sys.stdout = Tee(), None
sys.excepthook = lambda *error: sys.exit(9)
atexit.register(sys.exit, 9)
logging.setLoggerClass(type("Logger", (logging.Logger,), {}))
logging.getLogger().setLevel(0)
"""
    last = captured(tmp_path, odd + START + END, live=False)
    assert last.complete, last.failure


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError", "E: (its __str__ raised RuntimeError)"),
        ("return 'x' * 50_000_000", f"E: {'x' * 100}"),
    ],
)
def test_words_of_exceptions(tmp_path: Path, text: str, said: str) -> None:
    raising = f"class E(Exception):\n    def __str__(self): {text}\n@jax.jit\ndef fn(x): raise E\n"
    last = captured(tmp_path, START + raising + "inputs = (jnp.ones(8),)\n")
    assert last.failure is not None
    assert last.failure.kind == "function"
    assert last.failure.message.startswith(said)
    assert sum(map(len, (last.failure.message, last.failure.details, last.failure.said))) < 100_000
    assert "raise E" in last.failure.details
