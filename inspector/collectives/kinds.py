"""The kinds of collectives: what each stage calls them, and how much each of them moves."""

from __future__ import annotations

import math

from ..report import Kind
from .table import names, rule_of

HLO_OPCODES: dict[str, Kind] = {
    "all-reduce": "all-reduce",
    "reduce-scatter": "reduce-scatter",
    "all-gather": "all-gather",
    "all-to-all": "all-to-all",
    "collective-permute": "collective-permute",
    "collective-broadcast": "collective-broadcast",
    "ragged-all-to-all": "ragged-all-to-all",
    "send": "send-recv",
}
"""HLO's opcodes. Asynchronous halves have `-start` and `-done` appended; a `recv` is the other half of a `send`."""

STABLEHLO_OPS: dict[str, Kind] = {
    "stablehlo.all_reduce": "all-reduce",
    "stablehlo.reduce_scatter": "reduce-scatter",
    "stablehlo.all_gather": "all-gather",
    "stablehlo.all_to_all": "all-to-all",
    "stablehlo.collective_permute": "collective-permute",
    "stablehlo.collective_broadcast": "collective-broadcast",
    "stablehlo.send": "send-recv",
}

PRIMITIVES: dict[str, Kind] = {
    name: rule.lowers_to for name in names() if (rule := rule_of(name)) is not None and rule.lowers_to is not None
}
"""JAX's primitives, whose names end the `op_name` of what they were lowered to."""


def wire_bytes(kind: Kind, group_size: int, bytes_in: int | None, bytes_out: int | None) -> int | None:
    """Bytes that each device sends in a bandwidth-optimal algorithm; None where the sizes are not known.

    With groups of n, an all-gather and a reduce-scatter send (n-1)/n of the larger side, an all-reduce is one of each
    (Chan et al., "Collective communication: theory, practice, and experience", 2007), an all-to-all keeps 1/n at home.
    """
    if group_size <= 1 and kind not in ("collective-permute", "send-recv"):
        return 0
    share = (group_size - 1, group_size)
    match kind:
        case "all-gather":
            return _part(bytes_out, *share)
        case "reduce-scatter" | "all-to-all" | "ragged-all-to-all":
            return _part(bytes_in, *share)
        case "all-reduce":
            return _part(bytes_in, 2 * share[0], share[1])
        case "collective-permute" | "send-recv" | "collective-broadcast":
            return bytes_in


def _part(size: int | None, numerator: int, denominator: int) -> int | None:
    return None if size is None else math.ceil(size * numerator / denominator)
