"""JAX's collectives and casts over mesh axes: how each types, what it lowers to, how it transposes.

The first such table is in "Efficient transposition of replication-inducing collectives" (JAX's documentation, 2023);
this is what became of it. `tests/inspector/test_table.py` traces, lowers and transposes each one and compares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..report import Kind

State = Literal["varying", "invariant", "unreduced", "reduced"]
"""What a value can be over a mesh axis.

Varying: each device may hold another value. Invariant: all hold the same. Unreduced: each holds a summand of the
value that is meant. Reduced: all hold the same, and the cotangent is unreduced.
"""


@dataclass(frozen=True, slots=True)
class CollectiveRule:
    """One primitive, over the axes that it names.

    `functions` are what a user calls to get it. A value that is `takes` over the axes becomes one that is `gives`;
    `takes` is None for a primitive that takes no array, and over other axes nothing changes. `lowers_to` is None where
    nothing is communicated. `transpose` is the primitive that it transposes to, or what JAX writes instead; None where
    it is not linear. `equal` tells that all devices of a group hold the same result, whatever its type.
    """

    primitive: str
    functions: tuple[str, ...]
    summary: str
    takes: State | None
    gives: State
    lowers_to: Kind | None
    transpose: str | None
    equal: bool
    example: str
    note: str = ""

    @property
    def is_cast(self) -> bool:
        """Whether it only changes the type: every device goes on holding what it held."""
        return self.lowers_to is None and self.takes is not None


SLICE = "dynamic_slice"
"""What stands for the 2023 document's `pscatter`: each device keeps its block, found by `axis_index`."""

TABLE: tuple[CollectiveRule, ...] = (
    CollectiveRule(
        "psum_invariant",
        ("psum", "pmean"),
        "the sum over the axis, on every device; its type says that all hold the same",
        "varying",
        "invariant",
        "all-reduce",
        "pvary",
        True,
        "f32[3]{V:j} = psum_invariant[axes=('i',)] f32[3]{V:(i,j)}",
        "What psum is inside a shard_map with its check on. Its transpose communicates nothing.",
    ),
    CollectiveRule(
        "psum",
        ("psum", "pmean"),
        "the sum over the axis, on every device",
        "varying",
        "invariant",
        "all-reduce",
        "psum",
        True,
        "f32[3] = psum[axes=('i',)] f32[3]",
        "What psum is with the check off. Its transpose must sum again: it cannot know that the cotangents are equal.",
    ),
    CollectiveRule(
        "pvary",
        ("pvary", "pcast"),
        "the same value, from here on typed as one that may vary",
        "invariant",
        "varying",
        None,
        "psum_invariant",
        True,
        "f32[3]{V:i} = pvary[axes=('i',)] f32[3]",
        "JAX inserts it where an invariant value meets a varying one. Forward it is nothing; backward it is a psum."
        " It is the `pbroadcast` of the 2023 document.",
    ),
    CollectiveRule(
        "all_gather",
        ("all_gather",),
        "the blocks of all devices, on every device",
        "varying",
        "varying",
        "all-gather",
        "reduce_scatter",
        True,
        "f32[8]{V:i} = all_gather[axis_name=('i',)] f32[2]{V:i}",
        "All hold the same, but the type does not say so: a pvary is fused in, so that it transposes to one"
        " reduce_scatter and not to a psum and a slice.",
    ),
    CollectiveRule(
        "all_gather_invariant",
        ("all_gather",),
        "the blocks of all devices, on every device; its type says that all hold the same",
        "varying",
        "invariant",
        "all-gather",
        SLICE,
        True,
        "f32[8] = all_gather_invariant[axis_name=('i',)] f32[2]{V:i}",
        "all_gather(…, to='invarying'). Backward each device only slices its block out.",
    ),
    CollectiveRule(
        "all_gather_reduced",
        ("all_gather",),
        "the blocks of all devices, on every device; the cotangents will be summed where they are scattered",
        "varying",
        "reduced",
        "all-gather",
        "unreduced_reduce_scatter",
        True,
        "f32[8]{R:i} = all_gather_reduced[axis_name=('i',)] f32[2]{V:i}",
        "all_gather(…, to='reduced'), over explicit axes.",
    ),
    CollectiveRule(
        "reduce_scatter",
        ("psum_scatter",),
        "the sum over the axis, each device keeping one block of it",
        "varying",
        "varying",
        "reduce-scatter",
        "all_gather",
        False,
        "f32[2]{V:i} = reduce_scatter[axis_name=('i',)] f32[8]{V:i}",
    ),
    CollectiveRule(
        "unreduced_reduce_scatter",
        ("psum_scatter",),
        "the sum of the summands that the devices hold, each keeping one block of it",
        "unreduced",
        "varying",
        "reduce-scatter",
        "all_gather_reduced",
        False,
        "f32[2]{V:i} = unreduced_reduce_scatter[axis_name=('i',)] f32[8]{U:i}",
    ),
    CollectiveRule(
        "unreduced_psum",
        ("psum",),
        "the sum of the summands that the devices hold, on every device",
        "unreduced",
        "invariant",
        "all-reduce",
        "preduced",
        True,
        "f32[3] = unreduced_psum[axes=('i',)] f32[3]{U:i}",
    ),
    CollectiveRule(
        "preduced",
        ("pcast",),
        "the same value, its cotangent left unreduced",
        "invariant",
        "reduced",
        None,
        "unreduced_psum",
        True,
        "f32[3]{R:i} = preduced[axes=('i',)] f32[3]",
        "pcast(…, to='reduced').",
    ),
    CollectiveRule(
        "reduced_vary_cast",
        ("pcast",),
        "the same value, from here on typed as one that may vary; its cotangent is left unreduced",
        "reduced",
        "varying",
        None,
        "vary_unreduced_cast",
        True,
        "f32[3]{V:i} = reduced_vary_cast[axes=('i',)] f32[3]{R:i}",
        "pcast(…, to='varying') of a reduced value.",
    ),
    CollectiveRule(
        "vary_unreduced_cast",
        ("pcast",),
        "the devices' values, from here on read as summands",
        "varying",
        "unreduced",
        None,
        "reduced_vary_cast",
        False,
        "f32[3]{U:i} = vary_unreduced_cast[axes=('i',)] f32[3]{V:i}",
        "pcast(…, to='unreduced').",
    ),
    CollectiveRule(
        "all_to_all",
        ("all_to_all", "pswapaxes"),
        "block k of each device goes to device k: the transpose of a matrix of blocks",
        "varying",
        "varying",
        "all-to-all",
        "all_to_all",
        False,
        "f32[16]{V:i} = all_to_all[axis_name=('i',)] f32[16]{V:i}",
    ),
    CollectiveRule(
        "ragged_all_to_all",
        ("ragged_all_to_all",),
        "an all_to_all whose blocks have sizes of their own, told at run time",
        "varying",
        "varying",
        "ragged-all-to-all",
        "ragged_all_to_all",
        False,
        "f32[16]{V:i} = ragged_all_to_all[axis_name=('i',)] f32[16]{V:i} …",
    ),
    CollectiveRule(
        "ppermute",
        ("ppermute", "pshuffle"),
        "each source's value goes to its destination; who is no destination gets zeros",
        "varying",
        "varying",
        "collective-permute",
        "ppermute",
        False,
        "f32[3]{V:i} = ppermute[axis_name=('i',) perm=((0, 1),)] f32[3]{V:i}",
        "Its transpose sends the other way.",
    ),
    CollectiveRule(
        "pbroadcast",
        ("pbroadcast",),
        "the value of one device, on every device",
        "varying",
        "varying",
        "collective-broadcast",
        "psum",
        True,
        "f32[3]{V:i} = pbroadcast[axis_name=('i',) source=0] f32[3]{V:i}",
        "Lowers for GPUs only.",
    ),
    CollectiveRule(
        "pmax",
        ("pmax",),
        "the largest over the axis, on every device",
        "varying",
        "invariant",
        "all-reduce",
        None,
        True,
        "f32[3] = pmax[axes=('i',)] f32[3]{V:i}",
    ),
    CollectiveRule(
        "pmin",
        ("pmin",),
        "the smallest over the axis, on every device",
        "varying",
        "invariant",
        "all-reduce",
        None,
        True,
        "f32[3] = pmin[axes=('i',)] f32[3]{V:i}",
    ),
    CollectiveRule(
        "axis_index",
        ("axis_index",),
        "where along the axis the device stands",
        None,
        "varying",
        None,
        None,
        False,
        "i32[]{V:i} = axis_index[axis_name=i]",
        "From the partition's number and some arithmetic.",
    ),
)

_BY_PRIMITIVE = {rule.primitive: rule for rule in TABLE}

_ALIASES = {
    "psum2": "psum_invariant",
    "psum_scatter": "reduce_scatter",
    "pbroadcast_dynamic": "pbroadcast",
    "unreduced_pmax": "unreduced_psum",
    "unreduced_pmin": "unreduced_psum",
}
"""Names that other versions of JAX have for the same, or for what types and lowers alike."""


def rule_of(primitive: str) -> CollectiveRule | None:
    """The rule of a primitive of any version of JAX; None for one that is about no mesh axes.

    The beginning of an asynchronous collective (`psum_start`) has the rule of the whole; some casts end in `_p`.
    """
    name = primitive.removesuffix("_start").removesuffix("_p")
    return _BY_PRIMITIVE.get(_ALIASES.get(name, name))


def rules_named(name: str) -> tuple[CollectiveRule, ...]:
    """The rules that a name means: those of a function that users call, or of a primitive."""
    wanted = name.removeprefix("jax.").removeprefix("lax.")
    found = tuple(rule for rule in TABLE if wanted in rule.functions)
    own = rule_of(wanted)
    return found if own is None or own in found else (own, *found)


def names() -> tuple[str, ...]:
    """Everything that `rules_named` knows, functions first."""
    return tuple(dict.fromkeys((*(f for rule in TABLE for f in rule.functions), *_BY_PRIMITIVE, *_ALIASES)))
