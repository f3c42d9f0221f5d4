"""The same program in other words has the same findings: names, order, files, meshes and nesting are no part of it."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.findings.rules import RULES
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report.policy import Policy

from tests.findings.test_variants import libtpu
from tests.sweeps import sampled

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
def summed_in_the_backward_pass(a):
    loss = by_rows(lambda v: jnp.sum(lax.psum(jnp.cos(v + 11), "x") ** 2)[None])
    return jax.grad(lambda v: loss(v).sum())(a)
""",
    """
def as_its_rows_are(a):
    shared = partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())
    return shared(lambda v, rate: lax.cond(jnp.sum(v) > 10, lambda r: r / 2, lambda r: r, rate))(a, a[0])
""",
    """
def returned(a):
    return jax.shard_map(lambda v: v, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a * 12)
""",
    """
def gathered_each_time(a):
    def body(v):
        step = lambda c, _: (jnp.tanh(c @ lax.all_gather(v, "x", tiled=True)[:8]), None)
        return lax.scan(step, v + 13, None, 5)[0]
    return by_rows(body)(a)
""",
    """
def from_columns_to_rows(a):
    columns = lax.with_sharding_constraint(jnp.tan(a), NamedSharding(mesh, P(None, "y")))
    return lax.with_sharding_constraint(columns * 2, NamedSharding(mesh, P("x")))
""",
    """
def thrown_away(a):
    lax.with_sharding_constraint(a, NamedSharding(mesh, P("y")))
    return jnp.cos(a * 14)
""",
    """
def of_seventeen(a):
    return lax.with_sharding_constraint(jnp.zeros((17, 8)) + a[0], NamedSharding(mesh, P("x")))
""",
    """
def merged(a):
    columns = lax.with_sharding_constraint(a.T * 14, NamedSharding(mesh, P(None, "x")))
    return jnp.sin(columns.reshape(-1))
""",
    """
def back_and_forth(a):
    rows = lax.with_sharding_constraint(a - 15, NamedSharding(mesh, P("x")))
    columns = lax.with_sharding_constraint(2 * rows, NamedSharding(mesh, P(None, "x")))
    return lax.with_sharding_constraint(jnp.sin(columns), NamedSharding(mesh, P("x")))
""",
    """
def running_sums(a):
    rows = lax.with_sharding_constraint(a - 16, NamedSharding(mesh, P("x")))
    return lax.with_sharding_constraint(lax.cumsum(rows, axis=0), NamedSharding(mesh, P("x")))
""",
    """
def called_back(a):
    rows = lax.with_sharding_constraint(jnp.sin(a - 17), NamedSharding(mesh, P("x")))
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(a.shape, a.dtype), rows)
""",
    """
def the_first_one_sums(a):
    return by_rows(lambda v: lax.cond(lax.axis_index("x") == 0, lambda b: lax.psum(b, "x"), lambda b: b, v))(a)
""",
    """
def until_all_are_done(a):
    rows = lax.with_sharding_constraint(a - 18, NamedSharding(mesh, P("x")))
    return jax.vmap(lambda row: lax.while_loop(lambda r: r.sum() < 9, lambda r: r * 2 + 1, row))(rows)
""",
    """
def repeated(a):
    return by_rows(lambda v: jnp.ones((128, 64)) @ (jnp.ones((64, 128)) * v[0, 0]))(a)
""",
    """
def averaged_again(a):
    return by_rows(lambda v: lax.pmean(lax.psum_scatter(v * 19, "x", scatter_dimension=1, tiled=True), "x"))(a)
""",
    """
def stacked(a):
    own = lambda v: jax.grad(lambda w: jnp.sum(jnp.sin(v @ w)))(jnp.ones((8, 4)))[None]
    return jax.shard_map(own, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a + 21)
""",
    """
def in_order(a):
    return by_rows(lambda v: jnp.sin(lax.psum(v + 9, "x")))(a)
""",
)

NAMES = [re.search(r"def (\w+)", text)[1] for text in FUNCTIONS]  # type: ignore[index]

TAIL = f"""
def program(a, table, rows, given):
    results = [f(a + number) for number, f in enumerate([{", ".join(NAMES)}])]
    return results, table[rows].sum(1), (2 * given).astype(jnp.bfloat16)

program = jax.jit(program, donate_argnums=3)
inputs = (
    np.ones((16, 8), "float32"),
    jax.ShapeDtypeStruct((262144, 1024), jnp.float32),
    jax.ShapeDtypeStruct((64, 8), jnp.int32),
    np.ones(5, "float32"),
)
"""

BASE = HEAD + "".join(FUNCTIONS) + TAIL

ON_TPUS = {"SS00": 1, "SS10": 1, "SS17": 1, "SS18": 1, "SS24": 1}
"""How often the program for TPUs below has the others: what CPUs do not do, gradients that are checked, a comment."""

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
    "unused meshes": lambda text: text.replace("mesh = jax", f"{UNUSED}mesh = jax", 1) + UNUSED,
    "nested jits": lambda text: text.replace("\ndef ", "\n@jax.jit\ndef "),
    "other names": lambda text: re.sub(r'"([xy])"', r'"\1_axis"', re.sub(r"\b([av])\b", r"\1_array", text)),
    "another order": lambda text: HEAD + "".join(reversed(FUNCTIONS)) + text[len(HEAD) + len("".join(FUNCTIONS)) :],
    "helpers": _helpers,
}

OF_WHOLE_PROGRAMS = {f"SS{number}" for number in range(32, 39)}
"""Rules about all arguments or results of a program (`test_meant`)."""

OF_COMPILERS = {"SS31"}
"""The rules whose faults are in no program."""

CHANGED = (("another order", "unused meshes", "nested jits"), ("other names",), ("helpers",))
"""Changes that are made together: each capture takes seconds."""


def findings(folder: Path, text: str, function: str = "program") -> Counter[tuple[str, str, str, str]]:
    """How often each function has what finding, however it is said."""
    (folder / "script.py").write_text(textwrap.dedent(text))
    return counted(captured(folder, function))


def captured(folder: Path, function: str = "program", **options: Any) -> Capture:
    last = last_capture(Request(f"{folder / 'script.py'}:{function}", live=False, **options))
    assert last.complete, last.failure
    return last


def counted(capture: Capture, policy: Policy = Policy()) -> Counter[tuple[str, str, str, str]]:  # noqa: B008
    found: Counter[tuple[str, str, str, str]] = Counter()
    for each in inspect(capture, policy).findings:
        functions = [frame.function.partition(".")[0] for frame in each.place.source.stack]
        (name,) = {name for name in functions if name in NAMES} or {"elsewhere"}
        name = "" if each.rule == "SS23" else name  # of several lines
        found[each.rule, each.severity, each.confidence, name] += 1
    return found


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, str, str, str]]:
    return findings(tmp_path_factory.mktemp("base"), BASE)


@pytest.mark.once
def test_every_fault_is_found(base: Counter[tuple[str, str, str, str]]) -> None:
    assert {name for _, _, _, name in base} == {*NAMES, "elsewhere", ""} - {"in_order"}
    assert {rule.id for rule in RULES} - {rule for rule, _, _, _ in base} == {
        *ON_TPUS,
        *OF_COMPILERS,
        *OF_WHOLE_PROGRAMS,
    }


@pytest.mark.once
@pytest.mark.parametrize("changes", sampled([(each,) for each in CHANGED], 1), ids=", ".join)
def test_what_is_no_part_of_the_program(
    base: Counter[tuple[str, str, str, str]], changes: tuple[str, ...], tmp_path: Path
) -> None:
    changed = BASE
    for change in changes:
        before, changed = changed, CHANGES[change](changed)
        assert changed != before
    assert findings(tmp_path, changed) == base


@pytest.mark.once
def test_another_file(base: Counter[tuple[str, str, str, str]], tmp_path: Path) -> None:
    """The wrapper in one file, all that it calls in another."""
    (tmp_path / "layers.py").write_text(HEAD + "".join(FUNCTIONS))
    names = ", ".join(NAMES)
    assert findings(tmp_path, f"import jax, jax.numpy as jnp, numpy as np\nfrom layers import {names}\n{TAIL}") == base


SLICES_HEAD = """
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
"""

ACROSS, WIDENED, COMMENTED, DOUBLED = (
    """
def across(a):
    hidden = lax.with_sharding_constraint(jnp.tile(a, (256, 256)), NamedSharding(mesh, P("y", "x")))
    weights = lax.with_sharding_constraint(jnp.ones((2048, 2048)) * a[0, 0], NamedSharding(mesh, P("x")))
    return hidden @ weights
""",
    """
def widened(a):
    around = [(i, (i + 1) % 4) for i in range(4)]
    sent = lambda v: jnp.cos(lax.ppermute(v.astype(jnp.bfloat16).astype(jnp.float32), "y", around))
    return jax.shard_map(sent, mesh=mesh, in_specs=P("y"), out_specs=P("y"), check_vma=False)(a)
""",
    """
def commented(a):
    return a * 2  # shardscope: ignore[SS99]
""",
    """
def doubled(a):
    @jax.custom_vjp
    def product(v, w):
        return v @ w
    product.defvjp(lambda v, w: (v @ w, w), lambda w, g: (lax.psum(g @ w.T, "y"), jnp.zeros_like(w)))
    columns = jax.shard_map(product, mesh=mesh, in_specs=(P(), P(None, "y")), out_specs=P(None, "y"), check_vma=False)
    return jax.grad(lambda v: columns(v, jnp.ones((8, 8))).sum())(a)
""",
)

SLICES_TAIL = """
@jax.jit
def program(a):
    return [f(a + number) for number, f in enumerate([across, widened, commented, doubled])]
inputs = (np.ones((16, 8), "float32"),)
"""


def on_two_slices(folder: Path, text: str) -> Counter[tuple[str, str, str, str]]:
    (folder / "script.py").write_text(text)
    options = {"target": "tpu:v5p:2x2x1*2", "gradients": True}
    return counted(captured(folder, **options), Policy(thresholds={"SS18": 1e-6}))


@libtpu
def test_rules_of_tpus_gradients_and_comments(tmp_path: Path) -> None:
    """In other words, and with everything but the wrapper in another file."""
    found = on_two_slices(tmp_path, SLICES_HEAD + ACROSS + WIDENED + COMMENTED + DOUBLED + SLICES_TAIL)
    rules = Counter(rule for rule, _, _, _ in found.elements())
    assert {rule: rules[rule] for rule in ON_TPUS} == ON_TPUS
    unused = 'second = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "z"))\n'
    changed = f"{unused}{DOUBLED}{COMMENTED}{WIDENED}{ACROSS}{unused}"
    for change in ("other names", "nested jits"):
        changed = CHANGES[change](changed)
    head = CHANGES["other names"](SLICES_HEAD)
    (tmp_path / "layers.py").write_text(head + changed)
    names = "import jax, numpy as np\nfrom layers import across, widened, commented, doubled\n"
    assert on_two_slices(tmp_path, names + SLICES_TAIL) == found
