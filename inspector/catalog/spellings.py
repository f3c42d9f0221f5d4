"""The catalogue by the names that each language has for what is in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from .collective import CollectiveKind, CollectiveRule
from .collectives import CASTS, KINDS

KIND_OF: dict[str, CollectiveKind] = {kind.name: kind for kind in KINDS}

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(KIND_OF)]
"""The name of a kind; for what looks at types while the program runs, as JSON's schema does, one of those there are."""

HLO_OPCODES: dict[str, Kind] = {opcode: kind.name for kind in KINDS for opcode in kind.hlo}
"""HLO's opcodes, without the asynchronous halves."""

STARTS: dict[str, Kind] = {f"{opcode}-start": kind for opcode, kind in HLO_OPCODES.items()}
DONES = frozenset(f"{opcode}-done" for opcode in HLO_OPCODES)

FUSED: dict[tuple[str, str], Kind] = {kind.fused: kind.name for kind in KINDS if kind.fused is not None}
"""Kinds by what has their effect: the opcode in a fusion, and the beginning of the name of its computation."""

STABLEHLO_OPS: dict[str, Kind] = {operation: kind.name for kind in KINDS for operation in kind.stablehlo}
CUSTOM_CALLS: dict[str, Kind] = {target: kind.name for kind in KINDS for target in kind.custom_calls}
TRANSFERS: dict[str, Kind] = {transfer: kind.name for kind in KINDS for transfer in kind.transfers}

TABLE = (*(replace(rule, lowers_to=kind.name) for kind in KINDS for rule in kind.primitives), *CASTS)
"""JAX's primitives over mesh axes."""

_RULES = {name: rule for rule in TABLE for name in (rule.primitive, *rule.aliases)}

PRIMITIVES: dict[str, Kind] = {name: rule.lowers_to for name, rule in _RULES.items() if rule.lowers_to is not None}
"""JAX's primitives, whose names end the `op_name` of what they were lowered to."""

FUNCTIONS = tuple(dict.fromkeys(function for rule in TABLE for function in rule.functions))
"""The functions of `jax.lax`."""


def rule_of(primitive: str) -> CollectiveRule | None:
    """Return the rule of a primitive of any version of JAX; None for one that is about no mesh axes.

    The halves of an asynchronous collective (`psum_start`) have the rule of the whole; some casts end in `_p`.
    """
    return _RULES.get(primitive.removesuffix("_start").removesuffix("_p"))


def functions_of(*kinds: Kind) -> tuple[str, ...]:
    """Return the functions of `jax.lax` that lead to collectives of these kinds; without any, of all kinds."""
    rules = (rule for rule in TABLE if rule.lowers_to in (kinds or KIND_OF))
    return tuple(dict.fromkeys(function for rule in rules for function in rule.functions))
