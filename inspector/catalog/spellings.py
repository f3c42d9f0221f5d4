"""The catalogue by the names that each language has for what is in it, and primitives that are about no mesh axes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from .collective import CollectiveKind, CollectiveRule, FormerName
from .collectives import CASTS, FORMER_NAMES, KINDS

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
MLIR_OPS: dict[str, Kind] = {
    f"{dialect}.{name.partition('.')[2]}": kind
    for name, kind in STABLEHLO_OPS.items()
    for dialect in ("stablehlo", "mhlo", "sdy")
}
"""The same with those of MHLO, which StableHLO was before, and those that Shardy can make of reshards."""
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


def primitives_of(*kinds: Kind) -> tuple[str, ...]:
    """Return JAX's primitives that are lowered to collectives of these kinds."""
    return tuple(name for name, kind in PRIMITIVES.items() if kind in kinds)


def functions_of(*kinds: Kind) -> tuple[str, ...]:
    """Return the functions of `jax.lax` that lead to collectives of these kinds; without any, of all kinds."""
    rules = (rule for rule in TABLE if rule.lowers_to in (kinds or KIND_OF))
    return tuple(dict.fromkeys(function for rule in rules for function in rule.functions))


Entry = CollectiveKind | CollectiveRule | FormerName

ENTRIES: tuple[Entry, ...] = (*KINDS, *TABLE, *FORMER_NAMES)

_AROUND = r"\A(?:jax\.lax\.|jax\.|lax\.|stablehlo\.|mhlo\.)|_(?:start|done|p)\Z"
"""Dialect prefixes, and suffixes for the half of an asynchronous collective."""


def entries_named(name: str) -> tuple[Entry, ...]:
    """Return what a name means, kinds first: a function, a primitive, an operation or an opcode of a collective."""
    wanted = _plain(name)
    return tuple(entry for entry in ENTRIES if wanted in _names_of(entry))


def similar_names(name: str) -> list[str]:
    """Return the known names that are spelled much like one that is not known."""
    known = {spelled: None for entry in ENTRIES for spelled in _names_of(entry)}
    return get_close_matches(_plain(name), known, 3, 0.7)


def _plain(name: str) -> str:
    return re.sub(_AROUND, "", name.strip().lower().replace("-", "_"))


def _names_of(entry: Entry) -> Iterator[str]:
    match entry:
        case CollectiveKind(name, _, operations, opcodes, fused, calls, partners, transfers, also):
            spelled = (name, *operations, *opcodes, *calls, *partners, *transfers, *also, *(fused or ())[1:])
            yield from map(_plain, spelled)
        case CollectiveRule():
            yield from map(_plain, (*entry.functions, entry.primitive, *entry.aliases))
        case FormerName():
            yield entry.name


CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "remat", "remat2", "checkpoint"}
    | {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_lin"}
)

MLIR_CALLS = ("call", "func.call")
"""Operations of MLIR that call a function."""

SCOPES = frozenset({"run_scoped", "core_map"})
"""Primitives of kernels whose operands are the constants of their bodies."""

CALLED = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Parameters that hold the body of a call."""

CONSTRAINTS = ("sharding_constraint", "reshard", "mesh_cast")
"""Primitives that give a value another sharding, or ask for one."""

SDY_REQUESTS = frozenset({"sdy.sharding_constraint", "sdy.reshard"})
"""Operations of Shardy that do."""

EXCHANGES: frozenset[Kind] = frozenset({"all-to-all", "collective-permute"})
"""Kinds that leave each device with as much as it had."""

RESHARDING: frozenset[Kind] = EXCHANGES | {"all-gather"}
"""Kinds that bring a value into another sharding, and compute nothing."""

COMBINED: frozenset[Kind] = frozenset({"all-reduce", "reduce-scatter", "all-gather", "collective-permute"})
"""Kinds of which a compiler makes one with several operands, each with a result of its own."""

BECOMES: frozenset[tuple[Kind, Kind]] = frozenset(
    {("reduce-scatter", "all-reduce"), ("all-gather", "all-reduce"), ("all-reduce", "reduce-scatter")}
)
"""Kinds of which a later pass makes another: each device takes its block afterwards, or adds it to zeros before."""

REDUCTIONS = {
    "add": "sum",
    "maximum": "max",
    "minimum": "min",
    "multiply": "product",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
"""Names of reductions by the operation, of HLO or StableHLO, that combines two elements."""

RENAMED = {"dot_general": "dot", "broadcast_in_dim": "broadcast"}
"""HLO's names of operations of StableHLO, where they differ by more than underscores."""

_KERNELS = ("pallas_call", "core_map", "mpmd_map", "mosaic", "triton", "tpu_custom_call")


def is_kernel(primitive: str) -> bool:
    """Return whether an equation of that primitive is a kernel, whose body has a compiler of its own."""
    return any(name in primitive for name in _KERNELS)


PARAMETERS = ("params", "parameters", "weights", "model", "variables")
"""Names under which the state of a training step has the parameters."""


def place_of_parameters(path: str) -> int:
    """Return where a path has such a name, in its first two words: for an order in which parameters come first."""
    words = re.findall(r"\w+", path)[:2]
    return next((number for number, word in enumerate(words) if word in PARAMETERS), 2)


_INDEX, _LAYER = re.compile(r"\[\d+\]"), re.compile(r"_\d+(?='\]|/)")


def of_all_layers(path: str) -> str:
    """A path that all layers have: `['block_0']['dense_1']` is that of `dense_1` in all blocks."""
    return _LAYER.sub("_*", _INDEX.sub("[*]", path), count=1)


ROW_LOOPS = ("map", "scan")
"""Functions of `jax.lax` that run over the rows of arrays, one after the other."""
