"""The same program in other words has the same findings: names, order, files, meshes and nesting are no part of it."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="with older JAX some faults are not found")

HEAD = """
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
by_rows = partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
"""

FUNCTIONS = (
    """
def scattered(a):
    return by_rows(lambda v: lax.dynamic_slice_in_dim(lax.psum(v, "x"), lax.axis_index("x"), 1))(a)
""",
    """
def gathered(a):
    return by_rows(lambda v: jnp.sum(lax.all_gather(v * 2, "x"), axis=0))(a)
""",
    """
def summed_again(a):
    return by_rows(lambda v: v + lax.psum(lax.psum(jnp.sin(v), "x"), "x"))(a)
""",
    """
def shifted(a):
    return by_rows(lambda v: lax.ppermute(v + 3, "x", [(0, 1), (1, 2)]))(a)
""",
    """
def there_and_back(a):
    whole = lax.with_sharding_constraint(jnp.cos(a), NamedSharding(mesh, P()))
    return lax.with_sharding_constraint(whole * 3, NamedSharding(mesh, P("x")))
""",
    """
def logged(a):
    rows = lax.with_sharding_constraint(a - 7, NamedSharding(mesh, P("x")))
    return lax.scan(lambda c, _: (jnp.tanh(c), jnp.mean(c)), rows, None, 3)
""",
    """
def added_up(a):
    rows = lax.with_sharding_constraint(a - 8, NamedSharding(mesh, P("x")))
    return lax.scan(lambda c, n: (c + jnp.sum(jnp.exp(rows * n)), None), 0.0, jnp.arange(3.0))
""",
    """
def ring(a):
    def turned(v):
        around = [(i, (i + 1) % 4) for i in range(4)]
        step = lambda i, c: (c[0] + c[1] * i, lax.ppermute(c[1], "x", around))
        return lax.fori_loop(0, 4, step, (v, v))[0]
    return by_rows(turned)(a)
""",
    """
def one_after_the_other(a):
    return by_rows(lambda v: lax.psum(lax.psum(v * (5 + lax.axis_index("y")), "x"), "y"))(a)
""",
    """
def in_order(a):
    return by_rows(lambda v: jnp.sin(lax.psum(v + 9, "x")))(a)
""",
)

NAMES = [re.search(r"def (\w+)", text)[1] for text in FUNCTIONS]  # type: ignore[index]

TAIL = f"""
def program(a):
    return [f(a + number) for number, f in enumerate([{", ".join(NAMES)}])]

inputs = (np.ones((16, 8), "float32"),)
"""

BASE = HEAD + "".join(FUNCTIONS) + TAIL

UNUSED = 'second = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "z"))\n'


def _helpers(text: str) -> str:
    """The collectives and constraints by way of helpers that others call too."""
    helped = HEAD + "def total(v, axis):\n    return lax.psum(v, axis)\n\n"
    helped += "def along(v, *axes):\n    return lax.with_sharding_constraint(v, NamedSharding(mesh, P(*axes)))\n"
    body = text[len(HEAD) :].replace("lax.psum(", "total(")
    return helped + re.sub(r"lax\.with_sharding_constraint\((.*), NamedSharding\(mesh, P\((.*?)\)\)\)", _along, body)


def _along(found: re.Match[str]) -> str:
    return f"along({found[1]}{', ' if found[2] else ''}{found[2]})"


CHANGES: dict[str, Callable[[str], str]] = {
    "an unused mesh": lambda text: text + UNUSED,
    "an unused mesh before it": lambda text: text.replace("mesh = jax", f"{UNUSED}mesh = jax", 1),
    "other names": lambda text: re.sub(r'"([xy])"', r'"\1_axis"', re.sub(r"\b([av])\b", r"\1_array", text)),
    "another order": lambda text: HEAD + "".join(reversed(FUNCTIONS)) + TAIL,
    "nested jits": lambda text: text.replace("\ndef ", "\n@jax.jit\ndef "),
    "helpers": _helpers,
}


def findings(folder: Path, text: str, function: str = "program") -> Counter[tuple[str, str, str, str]]:
    """How often each function has what finding, however it is said."""
    (folder / "script.py").write_text(textwrap.dedent(text))
    last = last_capture(Request(f"{folder / 'script.py'}:{function}", live=False))
    assert last.complete, last.failure
    found: Counter[tuple[str, str, str, str]] = Counter()
    for each in inspect(last).findings:
        functions = [frame.function.partition(".")[0] for frame in each.place.source.stack]
        (name,) = {name for name in functions if name in NAMES} or {"elsewhere"}
        found[each.rule, each.severity, each.confidence, name] += 1
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, str, str, str]]:
    return findings(tmp_path_factory.mktemp("base"), BASE)


def test_every_fault_is_found(base: Counter[tuple[str, str, str, str]]) -> None:
    # With some versions of JAX what the partitioner inserts has no line.
    found = {name for rule, _, _, name in base if (rule, name) != ("SS23", "elsewhere")}
    assert found == set(NAMES) - {"in_order"}
    assert {rule for rule, _, _, _ in base} >= {"SS01", "SS22", "SS04", "SS19", "SS02", "SS25", "SS27", "SS28"}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_part_of_the_program(base: Counter[tuple[str, str, str, str]], change: str, tmp_path: Path) -> None:
    changed = CHANGES[change](BASE)
    assert changed != BASE
    assert findings(tmp_path, changed) == base


def test_another_file(base: Counter[tuple[str, str, str, str]], tmp_path: Path) -> None:
    """The wrapper in one file, all that it calls in another."""
    (tmp_path / "layers.py").write_text(HEAD + "".join(FUNCTIONS))
    assert findings(tmp_path, f"import numpy as np\nfrom layers import {', '.join(NAMES)}\n{TAIL}") == base
