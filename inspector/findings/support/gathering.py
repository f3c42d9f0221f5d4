"""Operations for which the partitioner gathers a whole operand, by target, and what to do instead.

`gathering.toml` is made by `tools/gathering_ops.py`, which compiles each of them for each target.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib import resources

IDIOMS = {
    "reduce_window_sum": "in a shard_map: jnp.cumsum of each part, then add what the parts before it sum up to, from an"
    " all_gather of the parts' last rows",
    "reduce_window": "in a shard_map: accumulate each part, then combine it with what the parts before it come to, from"
    " an all_gather of the parts' last rows",
    "dynamic_slice": "take rows by a product with a one-hot matrix, or in a shard_map: each device takes what it has of"
    " the slice, and a psum puts it together",
    "dynamic_update_slice": "write with jnp.where on an iota, which each device does on its own part",
    "slice": "slice before the dimension is sharded, or along one that is not",
    "top_k": "in a shard_map: lax.top_k of each part, all_gather those few, and lax.top_k again",
    "sort": "sort along a dimension that is whole; or keep the few that are needed with lax.top_k of each part first",
    "reduce": "in a shard_map: reduce each part, then all_gather one value of each",
    "fft": "transform along a dimension that is whole: exchange the cut one for it by lax.all_to_all before and after",
    "gather": "look rows up in a shard_map: each device those that it has, zeros for others, and a psum",
}
"""What to write instead, by JAX's name of the operation."""


@lru_cache(maxsize=1)
def _known() -> dict[str, list[str]]:
    text = resources.files(__package__).joinpath("gathering.toml").read_text(encoding="utf-8")
    return {target: list(operations) for target, operations in tomllib.loads(text).items()}


def targets_that_gather(operation: str) -> tuple[str, ...]:
    """The targets, with the version of JAX, on which an operation was seen to gather its operand."""
    return tuple(target for target, operations in _known().items() if operation in operations)


def only_on(operation: str, platform: str) -> bool:
    """Whether an operation was seen to gather on one platform and on no other that was tried."""
    found = {target.partition(",")[0] for target in targets_that_gather(operation)}
    return found == {platform}
