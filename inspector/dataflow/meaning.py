"""The meaning of each operation: the opcodes of HLO, the operations of StableHLO, and JAX's primitives.

This is the only table of operations by what they do. Walks along values name its classes, never opcodes. HLO's dashes
and JAX's and StableHLO's underscores are one spelling, and where languages share a name they share a meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Flag, auto
from functools import lru_cache

from ...parsers.record import Record
from ..catalog.spellings import (
    CALLS,
    CONSTRAINTS,
    DONES,
    HLO_OPCODES,
    KIND_OF,
    PRIMITIVES,
    SCOPES,
    STABLEHLO_OPS,
    STARTS,
    TABLE,
)


class Does(Flag):
    """The class of an operation, by the operand: walks pass through some classes, and end at the others."""

    FORWARD = auto()
    """The same value: copies, tuples and their elements, barriers, the ends of asynchronous operations."""
    REQUEST = auto()
    """The same value, for which a sharding is requested: it may be moved, but only where axes are not manual."""
    CAST = auto()
    """The same elements in another type."""
    RESHAPE = auto()
    """All elements, each once, in another shape or order."""
    REPEAT = auto()
    """The same elements several times."""
    SLICE = auto()
    """A block of the elements."""
    LOOKUP = auto()
    """Elements at indices that are another operand."""
    PLACE = auto()
    """The elements as a part of a larger value."""
    SCATTER = auto()
    """Elements are written or added where indices say, which are another operand."""
    POINTWISE = auto()
    """Element i of the result depends on element i of each operand."""
    ADD = auto()
    """Elementwise: the operands are added or subtracted."""
    SCALE = auto()
    """Elementwise: the operand is multiplied by another one, negated, or masked, so sums of it stay sums."""
    REDUCE = auto()
    """Elements along some dimensions become one."""
    CONTRACT = auto()
    """Sums of products of two operands."""
    SEND = auto()
    """Elements come from other devices."""
    SUM = auto()
    """Elements of all devices become one, on each of them or on one."""
    CALL = auto()
    """The results of a computation that is given the operands."""
    BRANCH = auto()
    """The same, where an operand decides which computation runs, or how often."""
    DEVICE = auto()
    """The device's own number."""
    MAKE = auto()
    """A value that depends on no operand: constants, parameters, counts."""
    INDEX = auto()
    """It only says which elements are taken, or where they go."""
    OPAQUE = auto()
    """Anything else: every element may depend on every other, or on what is not in the text."""


STRAIGHT = Does(0)
"""No operation, but calls, loops and branches: where a value itself goes."""

SAME = Does.FORWARD | Does.REQUEST | Does.CAST | Does.RESHAPE
"""All elements and nothing else."""

POINTWISE = Does.POINTWISE | Does.ADD | Does.SCALE

ELEMENTWISE = Does.FORWARD | Does.REQUEST | Does.CAST | POINTWISE
"""Element i is made of elements i."""

MOVES = SAME | Does.REPEAT | Does.SLICE | Does.PLACE | Does.SEND | Does.SUM | Does.DEVICE | Does.MAKE
"""Elements that are handed on, to other places or other devices, and not computed."""


class Meaning(Record, frozen=True):
    """The class of an operation for the operands at the positions `first`, None for all, and for the `others`."""

    does: Does
    first: tuple[int, ...] | None = None
    others: Does = Does.INDEX

    def of(self, position: int) -> Does:
        """The class of the operation for the operand of that position."""
        return self.does if self.first is None or position in self.first else self.others


OPAQUE = Meaning(Does.OPAQUE)

_CLASSES: Mapping[Does, str] = {
    Does.FORWARD: "copy copy_start tuple get_tuple_element opt_barrier optimization_barrier domain name async_start"
    " stop_gradient call_start fusion_start",
    Does.CAST: "bitcast_convert bitcast_convert_type convert convert_element_type reduce_precision stochastic_convert",
    Does.RESHAPE: "bitcast reshape dynamic_reshape transpose squeeze expand_dims reverse rev",
    Does.REPEAT: "broadcast broadcast_in_dim dynamic_broadcast_in_dim tile",
    Does.PLACE: "pad concatenate",
    Does.POINTWISE: "abs sign floor ceil round round_nearest_afz round_nearest_even not is_finite sqrt rsqrt cbrt real"
    " imag exp exp2 expm1 exponential exponential_minus_one log log1p log_plus_one logistic erf erfc erf_inv sine sin"
    " cosine cos tan sinh cosh tanh asin acos atan asinh acosh atanh atan2 remainder rem"
    " power pow integer_pow square maximum max minimum min nextafter clamp and or xor compare eq ne lt le gt ge"
    " lt_to le_to eq_to complex conj shift_left shift_right_logical shift_right_arithmetic popcnt population_count clz"
    " count_leading_zeros mulhi map rng_bit_generator random_bits threefry2x32",
    Does.ADD: "add add_any subtract sub",
    Does.SCALE: "multiply mul negate neg",
    Does.REDUCE: "reduce reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax argmin"
    " reduce_window select_and_scatter",
    Does.CONTRACT: "dot dot_general ragged_dot ragged_dot_general scaled_dot convolution conv_general_dilated",
    Does.BRANCH: "while conditional case if cond",
    Does.CALL: "fusion call scan shard_map manual_computation func.call sdy.manual_computation sdy.named_computation",
    Does.DEVICE: "partition_id replica_id axis_index",
    Does.MAKE: "constant iota parameter after_all create_token rng_get_and_update_state",
}

_BY_POSITION = {
    "slice": Meaning(Does.SLICE),
    "split": Meaning(Does.SLICE),
    "dynamic_slice": Meaning(Does.SLICE, (0,)),
    "gather": Meaning(Does.LOOKUP, (0,)),
    "dynamic_gather": Meaning(Does.LOOKUP, (0,)),
    "dynamic_update_slice": Meaning(Does.PLACE, (0, 1)),
    "dynamic_pad": Meaning(Does.PLACE, (0, 1)),
    **dict.fromkeys(
        ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"),
        Meaning(Does.PLACE, (0,), Does.SCATTER),
    ),
    "add_dependency": Meaning(Does.FORWARD, (0,)),
    "select": Meaning(Does.SCALE, (1, 2)),
    "select_n": Meaning(Does.SCALE, (1, 2)),
    "divide": Meaning(Does.SCALE, (0,), Does.POINTWISE),
    "div": Meaning(Does.SCALE, (0,), Does.POINTWISE),
}


def _table() -> Iterator[tuple[str, Meaning]]:
    for does, names in _CLASSES.items():
        yield from ((name, Meaning(does)) for name in names.split())
    yield from ((name, Meaning(Does.CALL)) for name in (*CALLS, *SCOPES))
    yield from ((name, Meaning(Does.REQUEST)) for name in (*CONSTRAINTS, "Sharding"))
    for rule in TABLE:
        for name in (rule.primitive, *rule.aliases):
            if rule.is_cast:
                yield name, Meaning(Does.FORWARD)
    for spelled in (HLO_OPCODES, STARTS, STABLEHLO_OPS, PRIMITIVES):
        for name, kind in spelled.items():
            yield _plain(name), Meaning(Does.SUM if KIND_OF[kind].reduces else Does.SEND)
    yield from ((_plain(name), Meaning(Does.FORWARD)) for name in DONES)
    yield from _BY_POSITION.items()


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_")


MEANINGS: Mapping[str, Meaning] = dict(_table())
"""By names without dialects, with underscores. What is not in it is OPAQUE."""

CUSTOM_CALLS: Mapping[str, Meaning] = {
    target: Meaning(does)
    for does, targets in {
        Does.FORWARD: "Sharding SPMDFullToShardShape SPMDShardToFullShape LayoutConstraint annotate_device_placement"
        " MoveToHost MoveToDevice PinToDevice PinToDeviceSram Pin Unpin AssumeGatherIndicesInBound",
        Does.RESHAPE: "RiscBitcast",
        Does.PLACE: "ConcatBitcast PadToStatic SliceToDynamic",
        Does.MAKE: "AllocateBuffer CreateBuffer",
    }.items()
    for target in targets.split()
}
"""The same by the targets of custom calls that compute nothing."""

MATMULS = ("matmul", "gemm", "dot", "conv")
"""Words in the targets of custom calls that contract dimensions."""


@lru_cache(512)
def meaning_of_call(target: str) -> Meaning:
    """Return the meaning of a custom call."""
    if any(word in target.lower() for word in MATMULS):
        return Meaning(Does.CONTRACT)
    return CUSTOM_CALLS.get(target, OPAQUE)


_HALVES = {"_done": Meaning(Does.FORWARD), "_update": Meaning(Does.FORWARD)}


@lru_cache(2048)
def meaning_of(name: str) -> Meaning:
    """Return the meaning of an opcode, an operation or a primitive; OPAQUE for one that is not known.

    The first half of an asynchronous operation has the meaning of the whole, the others hand its result on.
    """
    plain = _plain(name)
    if plain in MEANINGS:
        return MEANINGS[plain]
    for half, meaning in _HALVES.items():
        if plain.endswith(half):
            return meaning
    return MEANINGS.get(plain.removesuffix("_start").removesuffix("_p"), OPAQUE)


def does(name: str) -> Does:
    """Return the class of an opcode, an operation or a primitive."""
    return meaning_of(name).does


def names_of(classes: Does) -> frozenset[str]:
    """Return the names of the operations of some classes, with underscores, and with dashes as in HLO."""
    names = [name for name, meaning in MEANINGS.items() if meaning.does in classes]
    return frozenset((*names, *(name.replace("_", "-") for name in names)))


def all_do(names: Collection[str], classes: Does) -> bool:
    """Return whether all of some operations are of these classes, and nothing else."""
    return all(does(name) in classes for name in names)
