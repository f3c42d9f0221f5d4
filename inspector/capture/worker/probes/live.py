"""Running what was compiled: what comes out, and how long it takes."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...protocol.memory import available_bytes
from ...protocol.values import Execution, OutputSummary, statistics_of
from ..inputs.arguments import concrete, is_abstract
from ..inputs.callables import Traceable
from ..inputs.paths import result_path
from ..program.avals import is_ref, spec_text, type_text
from ..program.compiled import leaves_of
from ..program.values import donations
from .keeping import plain
from .partial import is_partial, placed, whole

RUNS = 5
TIMEOUT_S = 2.0
"""Seconds after which no further run is begun; there is always one after the warm-up."""

MAX_PRODUCT = 1 << 24
"""Elements of an output that are multiplied with random vectors."""

MAX_PRODUCTS = 1 << 26
"""Elements of all outputs together that are."""

MAX_INPUT_BYTES = 1 << 30
"""Bytes of arguments from which a digest is made."""

NUDGE = 4
"""Units in the last place by which arguments are changed, to see how far rounding goes in what is computed of them."""

NARROW = {"bf16": jnp.bfloat16, "f16": jnp.float16}
"""The narrower types, as jaxprs spell them."""

FLIPS = 1 / 32
"""Unit in the last place of a narrower type by which arguments are changed: of 16 values one is rounded otherwise."""

SMALL = 64
"""Outputs of up to so many elements are given in full."""


def obstacle(needed: int) -> str | None:
    """Return a reason not to run a program that needs so many bytes on all devices together, if there is one."""
    available = available_bytes()
    if available is not None and needed > available // 2:
        return f"it takes {needed / 1e9:.1f} GB on all devices together; {available / 1e9:.1f} GB of memory are free"
    return None


class Inputs(NamedTuple):
    """The arguments' leaves as the compiled program takes them; `seeded` where some had types but no values."""

    leaves: list[Any]
    tree: Any
    donated: list[bool]
    seeded: bool


def inputs_of(call: Traceable, compiled: Any, seed: int, *, gentle: bool = False) -> Inputs:
    """Values for all arguments, on the devices where they belong."""
    leaves, tree = jax.tree.flatten(call.dynamic())
    tree = getattr(call.traced, "_in_tree", tree)
    leaves = list(map(_still_there, leaves))
    values = [concrete(leaf, seed, index, gentle=gentle) for index, leaf in enumerate(leaves)]
    formats = _input_formats(compiled, len(leaves))
    donated = donations(call, len(leaves))
    try:
        placed = [_place(value, wanted) for value, wanted in zip(values, formats, strict=True)]
    except ValueError:  # Refs that a function closes over are counted among its arguments, and unused arguments are not
        placed = values
    return Inputs(placed, tree, donated, any(map(is_abstract, leaves)))


def nudged(inputs: Inputs, jaxpr: Any = None) -> Inputs:
    """The same arguments, each float changed by a few units in the last place or not at all.

    With a jaxpr by so much that some of them are rounded otherwise to the narrowest type that it computes in.
    """
    random = np.random.default_rng(0)
    text = "" if jaxpr is None else str(jaxpr)
    units = (float(jnp.finfo(dtype).eps) for name, dtype in NARROW.items() if f"{name}[" in text)
    least = FLIPS * max(units, default=0.0)

    def changed(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        steps = random.integers(-1, 2, leaf.shape) * max(least, NUDGE * float(jnp.finfo(leaf.dtype).eps))
        return jax.device_put((np.asarray(leaf).astype(np.float64) * (1 + steps)).astype(leaf.dtype), leaf.sharding)

    return inputs._replace(leaves=list(map(changed, inputs.leaves)))


def varied(inputs: Inputs) -> Inputs:
    """The same arguments, but for floats that are all alike: of ones, the results of programs that differ may be equal.

    Those are multiplied with numbers from 1/2 to 3/2, the same in each process.
    """
    random = np.random.default_rng(0)

    def changed(leaf: Any) -> Any:
        if not _is_uniform(leaf):
            return leaf
        factors = 0.5 + random.random(leaf.shape)
        return jax.device_put((np.asarray(whole(leaf)).astype(np.float64) * factors).astype(leaf.dtype), leaf.sharding)

    return inputs._replace(leaves=list(map(changed, inputs.leaves)))


def _is_uniform(leaf: Any) -> bool:
    """Return whether an array has several elements, all of which are the same number other than zero."""
    if not isinstance(leaf, jax.Array) or holds(leaf) or is_partial(leaf.sharding):
        return False
    if leaf.size < 2 or not jnp.issubdtype(leaf.dtype, jnp.floating):
        return False
    parts = [np.ravel(part) for part in {str(each.index): each.data for each in leaf.addressable_shards}.values()]
    first = parts[0][:1]
    if not first.size or not first[0]:
        return False
    return all((part[:SMALL] == first).all() and (part == first).all() for part in parts)  # most differ at once


def run(
    compiled: Any,
    inputs: Inputs,
    names: Sequence[str] = (),
    *,
    closely: bool = False,
    on_devices: bool = False,
    is_timed: bool = True,
) -> tuple[list[Any], Execution]:
    """The last run's outputs, and what the run gave.

    `names` are what the outputs are called, by their paths unless there is one for each; `closely` describes outputs so
    that they can be compared with those of another program, `on_devices` arguments too. If it `is_timed`, it runs
    several times; else arguments that outputs may replace are described as these.
    """

    given = digest_of(inputs.leaves) if closely else None
    begun = time.perf_counter()
    outputs, seconds = once(compiled, inputs)
    times = [] if is_timed else [round(seconds, 9)]
    while not times or (is_timed and len(times) < RUNS and time.perf_counter() - begun + seconds < TIMEOUT_S):
        outputs, seconds = once(compiled, inputs)
        times.append(round(seconds, 9))
    leaves_out, _ = jax.tree_util.tree_flatten_with_path(outputs)
    paths = names if len(names) == len(leaves_out) else [result_path(path) for path, _ in leaves_out]
    left, summaries = MAX_PRODUCTS, []
    for path, (_, leaf) in zip(paths, leaves_out, strict=True):
        summaries.append(_summary(path, leaf, min(left, MAX_PRODUCT) if closely else None))
        left = max(left - leaf.size, 0)
    described = tuple(map(_argument, inputs.leaves)) if on_devices else ()
    if closely and not (is_timed or on_devices):
        types = {(leaf.shape, leaf.dtype) for _, leaf in leaves_out}
        alike = (leaf for leaf in inputs.leaves if (np.shape(leaf), getattr(leaf, "dtype", None)) in types)
        described = tuple(map(_argument, alike))
    found = Execution(tuple(summaries), tuple(times), inputs.seeded, given, described)
    return [leaf for _, leaf in leaves_out], replace(
        found, uniform_inputs=closely and any(map(_is_uniform, inputs.leaves))
    )


def once(compiled: Any, inputs: Inputs) -> tuple[Any, float]:
    """The outputs of one run, and its seconds."""
    args, kwargs = jax.tree.unflatten(inputs.tree, fresh(inputs))
    started = time.perf_counter()
    outputs = jax.block_until_ready(compiled(*args, **kwargs))
    return outputs, time.perf_counter() - started


def fresh(inputs: Inputs) -> list[Any]:
    """The leaves for one run: copies of those that it may take over, or write to."""
    pairs = zip(inputs.leaves, inputs.donated, strict=True)
    copies = [_copy(leaf) if gone or holds(leaf) else leaf for leaf, gone in pairs]
    jax.block_until_ready(copies)
    return copies


def _still_there(leaf: Any) -> Any:
    """The leaf, or the type of an array that the script has donated since."""
    if not isinstance(leaf, jax.Array) or holds(leaf) or not leaf.is_deleted():
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)


def _place(value: Any, wanted: Any) -> Any:
    """The value as the compiled program takes it. Random keys have no layout of their own, only a sharding; a Ref is
    where it is."""
    if wanted is None or holds(value):
        return value
    if jnp.issubdtype(getattr(value, "dtype", None), jax.dtypes.extended):
        return jax.device_put(value, wanted.sharding)
    if is_partial(wanted.sharding) and not is_partial(getattr(value, "sharding", None)):
        return placed(value, wanted.sharding)
    return jax.device_put(value, wanted)


def _copy(value: Any) -> Any:
    """A copy of its own buffers, for a run that may take them over, or write to them."""
    if holds(value):
        return ref_of(value[...])
    if jnp.issubdtype(getattr(value, "dtype", None), jax.dtypes.prng_key):
        # `device_put` copies no buffers of a key that is on several devices.
        return jax.random.wrap_key_data(_copy(jax.random.key_data(value)), impl=jax.random.key_impl(value))
    # Not by `copy`, which is a program to be compiled for each shape.
    return jax.device_put(value, may_alias=False) if isinstance(value, jax.Array) else value


def holds(value: Any) -> bool:
    """Return whether a value is a Ref."""
    return is_ref(getattr(value, "aval", None))


def ref_of(value: Any) -> Any:
    """A Ref that holds a value."""
    make: Any = jax.new_ref if hasattr(jax, "new_ref") else jax.array_ref
    return make(value)


def _input_formats(compiled: Any, count: int) -> list[Any]:
    """Sharding and layout of each argument; None for one that the compiled program has no use for."""
    leaves = leaves_of(compiled, "input_formats")
    known = [leaf if getattr(leaf, "sharding", None) is not None else None for leaf in leaves]
    return known if len(known) == count else [None] * count


def digest_of(leaves: Sequence[Any]) -> str | None:
    """The same for the same bits in arrays of the same types; None where these are not arrays, or too many bytes."""
    known = [plain(each) if hasattr(each, "dtype") and not holds(each) else each for each in leaves]
    if any(holds(each) or not hasattr(each, "dtype") for each in known):
        return None
    if sum(each.size * each.dtype.itemsize for each in known) > MAX_INPUT_BYTES:
        return None
    found = hashlib.blake2b(digest_size=16)
    for each in known:
        found.update(f"{each.dtype}{each.shape}".encode())
        found.update(np.ascontiguousarray(whole(each)).tobytes())
    return found.hexdigest()


def _argument(leaf: Any) -> OutputSummary:
    is_known = isinstance(leaf, jax.Array) and not holds(leaf)
    return _summary("", leaf, MAX_PRODUCT) if is_known else OutputSummary("", "", None)


def _summary(path: str, leaf: Any, largest: int | None) -> OutputSummary:
    """The description of an output; with a `largest`, so closely that runs can be compared, up to so many elements."""
    summary = OutputSummary(path, type_text(jax.typeof(leaf)), spec_text(getattr(leaf, "sharding", None)))
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
        return summary
    array = whole(leaf)
    if array.size <= SMALL:
        summary = replace(summary, values=np.array2string(array, separator=", ", max_line_width=100))
    if largest is not None:
        summary = replace(summary, **fingerprint(array, largest))
    return replace(summary, **statistics(array))


def fingerprint(array: Any, largest: int = MAX_PRODUCT) -> dict[str, Any]:
    """A digest of the bits; and of what is not too large the norm, and the products with two fixed random vectors.

    Programs that compute the same in another order differ in these by no more than rounding.
    """
    found: dict[str, Any] = {
        "digest": hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    }
    if array.size > largest or not array.size or jnp.issubdtype(array.dtype, jnp.complexfloating):
        return found
    wide = np.nan_to_num(array.astype(np.float64).ravel())
    random = np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):
        products = [float(wide @ random.standard_normal(wide.size)) for _ in range(2)]
        norm = float(np.linalg.norm(wide))
    return {**found, "projections": (norm, *products)} if all(map(math.isfinite, (norm, *products))) else found


def statistics(array: Any) -> dict[str, Any]:
    """Minimum, mean and maximum of the finite elements, and how many are not; nothing for types that have none."""
    if jnp.issubdtype(array.dtype, jnp.complexfloating) or not array.size:
        return {}
    wide = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    is_finite = np.isfinite(wide)
    finite = wide if is_finite.all() else wide[is_finite]
    return statistics_of(finite, wide.size)
