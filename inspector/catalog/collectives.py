"""The catalogue of collectives: each kind once, with all that is known of it; and JAX's casts over mesh axes.

The first such table is in "Efficient transposition of replication-inducing collectives" (JAX's documentation, 2023);
this is what became of it. `tests/inspector/test_table.py` traces, lowers and transposes each primitive and compares.
"""

from __future__ import annotations

from .collective import SLICE, CollectiveKind, CollectiveRule, FormerName

# fmt: off
KINDS = (
    CollectiveKind("all-reduce",
        "the sum, or another reduction, of all devices' values, on every device",
        stablehlo=("stablehlo.all_reduce",), hlo=("all-reduce",), transfers=("ALL_REDUCE",), passes=2, reduces=True,
        primitives=(
            CollectiveRule("psum_invariant", ("psum", "pmean"), "varying", "invariant", "pvary", True,
                "the sum over the axis, on every device; typed as invariant",
                "f32[3]{V:j} = psum_invariant[axes=('i',)] f32[3]{V:(i,j)}",
                "psum inside a shard_map with its check on. Its transpose does not communicate.",
                aliases=("psum2",)),
            CollectiveRule("psum", ("psum", "pmean"), "varying", "invariant", "psum", True,
                "the sum over the axis, on every device",
                "f32[3] = psum[axes=('i',)] f32[3]",
                "psum with the check off. Its transpose must sum again, as the cotangents may differ."),
            CollectiveRule("unreduced_psum", ("psum",), "unreduced", "invariant", "preduced", True,
                "the sum of the summands that the devices hold, on every device",
                "f32[3] = unreduced_psum[axes=('i',)] f32[3]{U:i}",
                aliases=("unreduced_pmax", "unreduced_pmin")),
            CollectiveRule("pmax", ("pmax",), "varying", "invariant", None, True,
                "the maximum over the axis, on every device",
                "f32[3] = pmax[axes=('i',)] f32[3]{V:i}"),
            CollectiveRule("pmin", ("pmin",), "varying", "invariant", None, True,
                "the minimum over the axis, on every device",
                "f32[3] = pmin[axes=('i',)] f32[3]{V:i}"),
        )),
    CollectiveKind("reduce-scatter",
        "the sum, or another reduction, of all devices' values, each device keeping one block of it",
        stablehlo=("stablehlo.reduce_scatter",), hlo=("reduce-scatter",), fused=("all-reduce", "all-reduce-scatter"),
        transfers=("REDUCE_SCATTER",), sides="scattered", reduces=True,
        primitives=(
            CollectiveRule("reduce_scatter", ("psum_scatter",), "varying", "varying", "all_gather", False,
                "the sum over the axis, each device keeping one block of it",
                "f32[2]{V:i} = reduce_scatter[axis_name=('i',)] f32[8]{V:i}",
                aliases=("psum_scatter",)),
            CollectiveRule("unreduced_reduce_scatter", ("psum_scatter",),
                "unreduced", "varying", "all_gather_reduced", False,
                "the sum of the summands that the devices hold, each keeping one block of it",
                "f32[2]{V:i} = unreduced_reduce_scatter[axis_name=('i',)] f32[8]{U:i}"),
        )),
    CollectiveKind("all-gather",
        "the concatenated blocks of all devices, on every device",
        stablehlo=("stablehlo.all_gather",), hlo=("all-gather",), transfers=("ALL_GATHER",), sides="gathered",
        primitives=(
            CollectiveRule("all_gather", ("all_gather",), "varying", "varying", "reduce_scatter", True,
                "the blocks of all devices, on every device",
                "f32[8]{V:i} = all_gather[axis_name=('i',)] f32[2]{V:i}",
                "All devices hold the same value, typed as varying: a fused pvary makes it transpose to one"
                " reduce_scatter instead of a psum and a slice."),
            CollectiveRule("all_gather_invariant", ("all_gather",), "varying", "invariant", SLICE, True,
                "the blocks of all devices, on every device; typed as invariant",
                "f32[8] = all_gather_invariant[axis_name=('i',)] f32[2]{V:i}",
                "all_gather(…, to='invarying'). Its transpose only slices out each device's block."),
            CollectiveRule("all_gather_reduced", ("all_gather",),
                "varying", "reduced", "unreduced_reduce_scatter", True,
                "the blocks of all devices, on every device; the cotangents will be summed where they are scattered",
                "f32[8]{R:i} = all_gather_reduced[axis_name=('i',)] f32[2]{V:i}",
                "all_gather(…, to='reduced'), over explicit axes."),
        )),
    CollectiveKind("all-to-all",
        "block k of each device, on device k",
        stablehlo=("stablehlo.all_to_all",), hlo=("all-to-all",), transfers=("ALL_TO_ALL",), pattern="exchange",
        primitives=(
            CollectiveRule("all_to_all", ("all_to_all", "pswapaxes"), "varying", "varying", "all_to_all", False,
                "block k of each device goes to device k: the transpose of a matrix of blocks",
                "f32[16]{V:i} = all_to_all[axis_name=('i',)] f32[16]{V:i}"),
        )),
    CollectiveKind("collective-permute",
        "each device's value, on another device",
        stablehlo=("stablehlo.collective_permute",), hlo=("collective-permute",), transfers=("ONE_TO_ONE",),
        pattern="pairs",
        primitives=(
            CollectiveRule("ppermute", ("ppermute", "pshuffle"), "varying", "varying", "ppermute", False,
                "each source's value goes to its destination; devices without a source get zeros",
                "f32[3]{V:i} = ppermute[axis_name=('i',) perm=((0, 1),)] f32[3]{V:i}",
                "Its transpose sends in the opposite direction."),
        )),
    CollectiveKind("collective-broadcast",
        "one device's value, on every device",
        stablehlo=("stablehlo.collective_broadcast",), hlo=("collective-broadcast",), whole=True,
        primitives=(
            CollectiveRule("pbroadcast", ("pbroadcast",), "varying", "varying", "psum", True,
                "the value of one device, on every device",
                "f32[3]{V:i} = pbroadcast[axis_name=('i',) source=0] f32[3]{V:i}",
                "Lowers for GPUs only.",
                aliases=("pbroadcast_dynamic",)),
        )),
    CollectiveKind("ragged-all-to-all",
        "blocks of individual sizes, from each device to every other one",
        hlo=("ragged-all-to-all",), custom_calls=("ragged_all_to_all",), sides="apart", pattern="exchange",
        whole=True, at_most=True,
        primitives=(
            CollectiveRule("ragged_all_to_all", ("ragged_all_to_all",),
                "varying", "varying", "ragged_all_to_all", False,
                "an all_to_all with blocks of individual sizes, given at run time",
                "f32[16]{V:i} = ragged_all_to_all[axis_name=('i',)] f32[16]{V:i} …"),
        )),
    CollectiveKind("send-recv",
        "one device's value, on another device, by a send there and a recv here",
        stablehlo=("stablehlo.send",), hlo=("send",), partners=("recv",), also=("psend", "precv"), sides="apart",
        pattern="pairs"),
)

CASTS = (
    CollectiveRule("pvary", ("pvary", "pcast"), "invariant", "varying", "psum_invariant", True,
        "the same value, typed as varying",
        "f32[3]{V:i} = pvary[axes=('i',)] f32[3]",
        "JAX inserts it where an invariant value meets a varying one. Forward it is nothing; backward it is a psum."
        " It is the `pbroadcast` of the 2023 document."),
    CollectiveRule("preduced", ("pcast",), "invariant", "reduced", "unreduced_psum", True,
        "the same value, its cotangent left unreduced",
        "f32[3]{R:i} = preduced[axes=('i',)] f32[3]",
        "pcast(…, to='reduced')."),
    CollectiveRule("reduced_vary_cast", ("pcast",), "reduced", "varying", "vary_unreduced_cast", True,
        "the same value, typed as varying; its cotangent is left unreduced",
        "f32[3]{V:i} = reduced_vary_cast[axes=('i',)] f32[3]{R:i}",
        "pcast(…, to='varying') of a reduced value."),
    CollectiveRule("vary_unreduced_cast", ("pcast",), "varying", "unreduced", "reduced_vary_cast", False,
        "the devices' values, reinterpreted as summands",
        "f32[3]{U:i} = vary_unreduced_cast[axes=('i',)] f32[3]{V:i}",
        "pcast(…, to='unreduced')."),
    CollectiveRule("axis_index", ("axis_index",), None, "varying", None, False,
        "the device's index along the axis",
        "i32[]{V:i} = axis_index[axis_name=i]",
        "From the partition's number and some arithmetic."),
)
# fmt: on
"""Primitives that concern mesh axes and communicate nothing."""

FORMER_NAMES = (
    FormerName("pbroadcast", "pvary", "the 2023 document's name for pvary"),
    FormerName(
        "pscatter",
        "all_gather_invariant",
        "the 2023 document's name for what all_gather_invariant transposes to: each device keeps its own block of a"
        f" value that all hold, by a {SLICE} at its axis_index",
    ),
)
