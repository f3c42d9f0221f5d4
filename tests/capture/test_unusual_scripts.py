"""Scripts that do to Python, and to JAX, what JAX takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture

from tests.sweeps import sampled

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
    sampled(
        [
            "import os; os.environ['JAX_PLATFORMS'] = 'tpu'\n" + START,
            START + "jax.config.update('jax_platforms', 'cuda,cpu')\njax.config.update('jax_platform_name', 'gpu')\n",
        ],
        1,
    ),
)
def test_other_platforms_are_answered_by_fakes(tmp_path: Path, choice: str) -> None:
    last = captured(tmp_path, choice + END, live=False)
    assert last.complete, last.failure
    assert last.subject is not None
    assert last.subject.platform == "cpu"
    assert any("was kept at 'cpu'" in message.text for message in last.messages)


@pytest.mark.once
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


@pytest.mark.parametrize(
    ("lines", "raised"),
    [
        ("error = ValueError('a'); error.__notes__ = [5, object, 'a note']", "ValueError: a"),
        ("error = type('E', (Exception,), {'__str__': lambda self: Text('odd')})()", "E: odd"),
        ("for n in range(3000): error = chained(n, error)", "ValueError: 2999"),
        ("a, error = ValueError('a'), ValueError('b'); a.__cause__, error.__cause__ = error, a", "ValueError: b"),
        (
            "error = ExceptionGroup('many', [ValueError(n) for n in range(2000)])",
            "ExceptionGroup: many (2000 sub-exceptions)",
        ),
    ],
)
def test_exceptions_that_are_no_plain_ones(tmp_path: Path, lines: str, raised: str) -> None:
    """Python itself prints each of them: the failure is the script's, with the line that raised it."""
    script = f"""
class Text(str):
    def splitlines(self, *_): raise RuntimeError
    __getitem__ = __len__ = __str__ = splitlines
def chained(number, cause):
    error = ValueError(number)
    error.__cause__ = cause
    return error
error = None
{lines}
@jax.jit
def fn(x): raise error
"""
    last = captured(tmp_path, START + script + "inputs = (jnp.ones(8),)\n")
    assert last.failure is not None
    assert last.failure.kind == "function"
    assert last.failure.message == raised
    assert last.failure.stack[0].function == "fn"
    assert len(last.failure.details) <= 100_000


def test_an_exception_that_shows_nothing(tmp_path: Path) -> None:
    hidden = "class E(Exception):\n    def __getattribute__(self, name): raise KeyError(name)\n    __str__ = None\n"
    last = captured(tmp_path, START + hidden + "def inputs(): raise E\ndef fn(x): return x\n")
    assert last.failure is not None
    assert last.failure.message == "E: (its __str__ raised TypeError)"
    assert "def inputs(): raise E" in last.failure.details


def test_globals_that_stand_for_nothing_yet(tmp_path: Path) -> None:
    """Proxies as Werkzeug's raise for all that they are asked, and modules that load lazily, where nothing asks."""
    unbound = """
import sys, types
class Proxy:
    def unbound(self, *names): raise RuntimeError(f"unbound {names}")
    __class__ = property(unbound)
    __getattr__ = __eq__ = __hash__ = __bool__ = __iter__ = __len__ = __repr__ = unbound
class Lazy(types.ModuleType):
    def __getattribute__(self, name): raise ImportError(name)
request, lazy = Proxy(), Lazy("lazy")
sys.modules["lazy"] = lazy
del __file__
"""
    last = captured(tmp_path, START + unbound + END, live=False)
    assert last.complete, last.failure


@pytest.mark.parametrize("replacement", ["lambda f, **options: f", "functools.partial(measured, jit=jax.jit)"])
def test_a_jit_of_its_own(tmp_path: Path, replacement: str) -> None:
    """A script may put something else in the place of `jax.jit`: to turn it off, or to measure."""
    replaced = f"""
import functools
def measured(f, jit, **options):
    g = jit(f, **options)
    return functools.wraps(f)(lambda *args: g(*args))
jax.jit = {replacement}
"""
    last = captured(tmp_path, START + replaced + END)
    assert last.complete, last.failure
    assert last.execution is not None
    assert [(each.minimum, each.maximum) for each in last.execution.outputs] == [(2, 2)]


def test_an_exit_says_why(tmp_path: Path) -> None:
    """Of arguments that a script lacks, `argparse` says on standard error which, before it exits."""
    parsing = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--model', required=True)\np.parse_args()\n"
    )
    (tmp_path / "alone.py").write_text(parsing)
    said = subprocess.run([sys.executable, tmp_path / "alone.py"], capture_output=True, text=True).stderr
    for rest, where in ((START + END, "`--`"), ("def fn(x): return x\n", "come after it")):
        last = captured(tmp_path, parsing + rest)
        assert last.failure is not None
        assert last.failure.details.endswith(said.replace("alone.py", "script.py"))
        assert last.failure.hint is not None
        assert where in last.failure.hint
    assert captured(tmp_path, parsing + START + END, argv=("--model", "x"), live=False).complete
