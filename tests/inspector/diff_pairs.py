"""Pairs of programs of which is known what differs in their communication.

A side is a sample, or a sample (or SCRIPT) with texts replaced. `differs` is all that does: `+1 all-reduce y` (count,
kind, axes after), `-1 …`, or `~1 all-reduce x: executions` with the fields of the work that differ; wire bytes and
bytes out, which follow from them, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

SCRIPT = """
from functools import partial
import jax
import jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P("y")), out_specs=(P(), P()))
def step(a, b):
    def body(_, total):
        return total + lax.psum(jnp.sin(a + total), "x")
    looped = lax.fori_loop(0, 3, body, jnp.zeros_like(a))
    once = lax.pmax(b * 2, "y")
    return lax.psum(looped, "x"), once

step_inputs = (jnp.arange(32.0).reshape(8, 4), jnp.arange(6.0))
"""

UPDATE = """
from functools import partial
import jax
import jax.numpy as jnp
from jax import NamedSharding, P
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

@partial(jax.jit, donate_argnums=0)
def step(state, gradient):
    return jax.tree.map(lambda s, g: s - 0.1 * g, state, gradient)

def step_inputs():
    rows = NamedSharding(mesh, P("x"))
    return jax.device_put(jnp.ones((64, 8)), rows), jax.device_put(jnp.ones((64, 8)), rows)
"""

Edits = tuple[tuple[str, str], ...]

SAME: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownPair:
    """`before` with `edits` is `after`, unless that is named; `headline` is what must stand in it beside."""

    story: str
    before: str
    edits: Edits = ()
    after: str | None = None
    differs: tuple[str, ...] = SAME
    headline: str = ""
    borders: tuple[str, ...] = ()


MOVED = (("from functools import partial\n", "\n# Three lines\n# more.\nfrom functools import partial\n"),)

PAIRS = (
    # What is no change.
    KnownPair("moved by three lines", "script:step", MOVED),
    KnownPair("moved by three lines", "fsdp_tp:grad", MOVED),
    KnownPair("comments", "script:step", (("pmax(b * 2", "pmax(  # the largest\n        b * 2"),)),
    KnownPair("comments", "megatron_mlp:grad", (('(x * x), "data")', '(x * x), "data")  # all of them'),)),
    KnownPair("renamed variables", "script:step", (("looped", "sums"), ("once", "top"))),
    KnownPair(
        "renamed variables", "fsdp_tp:grad", (("W, b", "kernel, bias"), ("x @ W", "x @ kernel"), ("+ b\n", "+ bias\n"))
    ),
    KnownPair(
        "renamed function", "script:step", (("def step(", "def other("), ("step_inputs", "step = other\nstep_inputs"))
    ),
    KnownPair("renamed function", "data_parallel:grad", (("predict", "forward"),)),
    KnownPair(
        "reordered independent operations",
        "script:step",
        (('    once = lax.pmax(b * 2, "y")\n', ""), ("    def body", '    once = lax.pmax(b * 2, "y")\n    def body')),
    ),
    KnownPair(
        "reordered independent operations",
        "grad_accumulation:once",
        (
            ("W, b = params", "b, W = params"),
            (
                "params = random.normal(size=(WIDTH, WIDTH)) / 4, random.normal(size=WIDTH)",
                "params = random.normal(size=WIDTH), random.normal(size=(WIDTH, WIDTH)) / 4",
            ),
        ),
    ),
    KnownPair(
        "a helper function",
        "data_parallel:loss",
        (
            ('return lax.pmean(jnp.mean(errors), "batch")', "return mean(errors)"),
            ("@jax.jit\n", 'def mean(errors):\n    return lax.pmean(jnp.mean(errors), "batch")\n\n\n@jax.jit\n'),
        ),
    ),
    KnownPair(
        "the axes of one psum in another order", "psum_2d:over_both", (('("i", "j"))\n\n\n@', '("j", "i"))\n\n\n@'),)
    ),
    KnownPair("by hand and by the partitioner", "matmul_psum:matmul", after="matmul_psum:automatic"),
    KnownPair(
        "the check off, where there is no gradient",
        "data_parallel:loss",
        (("out_specs=P())", "out_specs=P(), check_vma=False)"),),
    ),
    KnownPair("another shape of the same bytes", "all_gather:tiled", after="all_gather:stacked"),
    # Specs.
    KnownPair(
        "one constraint closed",
        "constraint:open_columns",
        after="constraint:closed_columns",
        differs=("+1 all-gather model",),
        borders=("result",),
    ),
    KnownPair(
        "a constraint that asks for whole copies",
        "gather_then_slice:repaired",
        after="gather_then_slice:faulty",
        differs=("+1 all-gather x",),
    ),
    KnownPair(
        "two steps instead of one",
        "full_rematerialization:faulty",
        after="full_rematerialization:repaired",
        differs=("~1 all-gather model: bytes_in",),
        headline="gone: SS09",
    ),
    KnownPair(
        "an in_spec dropped",
        "matmul_psum:matmul",
        (('in_specs=(P("x", "y"), P("y", None))', 'in_specs=(P("x"), P())'), ('lax.psum(a @ b, "y")', "a @ b")),
        differs=("-1 all-reduce y", "+1 all-gather y", "+1 all-gather y"),
    ),
    KnownPair(
        "an argument that no axis shards",
        "script:step",
        (('P("x"), P("y")', 'P("x"), P(None)'),),
        differs=("~1 all-reduce y: bytes_in",),
        borders=("b", "result[1]"),
    ),
    # Collectives more and less.
    KnownPair(
        "a psum more", "script:step", (("psum(looped", 'psum(lax.psum(looped, "y")'),), differs=("+1 all-reduce y",)
    ),
    KnownPair(
        "a psum more",
        "psum_2d:over_rows",
        (('P(None, "j"))', "P())"), ('return lax.psum(block, "i")', 'return lax.psum(lax.pmax(block, "j"), "i")')),
        differs=("+1 all-reduce j",),
        borders=("result",),
    ),
    KnownPair(
        "a pmax less",
        "script:step",
        (('lax.pmax(b * 2, "y")', "b * 2"), ("P(), P())", 'P(), P("y"))')),
        differs=("-1 all-reduce y",),
        borders=("result[1]",),
    ),
    KnownPair(
        "a sum of what is shared, combined with another",
        "psum_of_invariant:repaired",
        after="psum_of_invariant:faulty",
        differs=("~1 all-reduce batch: bytes_in",),
        headline="new: SS04",
    ),
    KnownPair(
        "a mean that was missing",
        "unsound_invariance:faulty",
        after="unsound_invariance:repaired",
        differs=("+1 all-reduce x",),
    ),
    # The check of variance.
    KnownPair(
        "the check off",
        "megatron_mlp:grad",
        (("out_specs=P())", "out_specs=P(), check_vma=False)"),),
        differs=("+1 all-reduce data", "+1 all-reduce model"),
        headline="new: SS03",
    ),
    KnownPair(
        "the check on",
        "extra_backward_psum:faulty",
        after="extra_backward_psum:repaired",
        differs=("-1 all-reduce data", "-1 all-reduce model"),
        headline="SS03 extra-backward-psum",
    ),
    KnownPair(
        "the check off, a transposed psum",
        "transposes:psum_to_invariant",
        after="transposes:psum_to_invariant_unchecked",
        differs=("+1 all-reduce i",),
    ),
    KnownPair(
        "the check off, a transposed identity",
        "transposes:identity",
        after="transposes:identity_unchecked",
        differs=("+1 all-reduce i",),
    ),
    KnownPair(
        "the check off, where cotangents differ",
        "transposes:psum_to_varying",
        after="transposes:psum_to_varying_unchecked",
    ),
    # Reduce-scatter.
    KnownPair(
        "psum and slice → psum_scatter",
        "missing_reduce_scatter:faulty",
        after="missing_reduce_scatter:repaired",
        differs=("~1 reduce-scatter x: kind",),
        headline="became reduce-scatter",
    ),
    KnownPair(
        "psum_scatter → psum and slice",
        "psum_scatter:psum_scatter",
        (
            (
                'return lax.psum_scatter(block, "i", tiled=True)',
                'return lax.dynamic_slice_in_dim(lax.psum(block, "i"), lax.axis_index("i"), 1)',
            ),
        ),
        differs=("~1 all-reduce i: kind",),
        headline="became all-reduce",
    ),
    KnownPair(
        "a ring of permutes",
        "psum_scatter:psum_scatter",
        after="psum_scatter:by_hand",
        differs=("-1 reduce-scatter i", "+3 collective-permute i"),
    ),
    # Meshes.
    KnownPair(
        "the axes of the mesh swapped",
        "matmul_psum:matmul",
        (('((4, 2), ("x", "y")', '((2, 4), ("x", "y")'),),
        differs=("~1 all-reduce y: bytes_in",),
    ),
    KnownPair("the names of the axes swapped", "psum_2d:over_rows", (('2), ("i", "j")', '2), ("j", "i")'),)),
    KnownPair(
        "over the other axis",
        "psum_2d:over_rows",
        (
            ('out_specs=P(None, "j"))', 'out_specs=P("i"))'),
            ('return lax.psum(block, "i")', 'return lax.psum(block, "j")'),
        ),
        differs=("~1 all-reduce j: axes",),
        borders=("result",),
    ),
    # How much and how often.
    KnownPair(
        "a block more",
        "megatron_mlp:loss",
        (("WIDTH, HIDDEN = 2", "WIDTH, HIDDEN = 3"),),
        differs=("+1 all-reduce model",),
    ),
    KnownPair(
        "a layer more",
        "fsdp_tp:loss",
        (("(16, 32, 32, 8)", "(16, 32, 32, 32, 8)"),),
        differs=("+1 all-gather batch", "+1 all-gather batch", "+1 reduce-scatter feats"),
    ),
    KnownPair(
        "a layer less",
        "fsdp_tp:loss",
        (("(16, 32, 32, 8)", "(16, 32, 8)"),),
        differs=("-1 all-gather batch", "-1 all-gather batch", "-1 reduce-scatter feats"),
    ),
    KnownPair(
        "a layer more, its gradients combined with the others'",
        "data_parallel:grad",
        (("(16, 32, 32, 8)", "(16, 32, 32, 32, 8)"),),
        differs=("~1 all-reduce batch: bytes_in",),
    ),
    KnownPair("more trips", "script:step", (("(0, 3,", "(0, 5,"),), differs=("~1 all-reduce x: executions",)),
    KnownPair(
        "more microbatches",
        "pipeline:loss",
        (("MICROBATCHES, EXAMPLES, WIDTH = 4, 6", "MICROBATCHES, EXAMPLES, WIDTH = 4, 8"),),
        differs=("~1 collective-permute stage: executions",),
        headline="runs 9 → 11 times",
    ),
    KnownPair(
        "hoisted out of a loop",
        "script:step",
        (
            ('total + lax.psum(jnp.sin(a + total), "x")', "total + summed"),
            ("    def body", '    summed = lax.psum(jnp.sin(a), "x")\n    def body'),
        ),
        differs=("~1 all-reduce x: executions",),
        headline="moved out of a loop, runs 3 → 1 times",
    ),
    KnownPair(
        "hoisted out of a loop",
        "grad_accumulation:each_time",
        after="grad_accumulation:once",
        differs=("~1 all-reduce batch: executions",),
        headline="moved out of a loop, runs 6 → 1 times",
    ),
    # On the wire.
    KnownPair(
        "another dtype", "script:step", (("b * 2", "(b * 2).astype(jnp.int32)"),), differs=("~1 all-reduce y: dtypes",)
    ),
    KnownPair(
        "half the bytes",
        "missing_reduce_scatter:repaired",
        (("lax.psum_scatter(a @ b", "lax.psum_scatter((a @ b).astype(jnp.int16)"),),
        differs=("~1 reduce-scatter x: dtypes bytes_in",),
    ),
    KnownPair(
        "to other devices",
        "ppermute:shift",
        after="ppermute:shift_open",
        differs=("~1 collective-permute i: partners",),
    ),
    # Memory.
    KnownPair("donation lost", "update:step", (("donate_argnums=0", "static_argnums=()"),), headline="donation lost"),
)
