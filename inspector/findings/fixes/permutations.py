"""Permutations of devices in the user's source."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .calls import Call
from .edits import Edits, instead


def permutation_text(destinations: Sequence[int]) -> str:
    """Return the pairs of a permutation of all devices as code, given where each device sends to."""
    size, shift = len(destinations), destinations[0]
    if all(to == (device + shift) % size for device, to in enumerate(destinations)):
        return f"[(i, (i + {shift}) % {size}) for i in range({size})]"
    return repr(list(enumerate(destinations)))


def with_permutation(call: Call | None, text: str) -> Edits:
    """Return a ppermute with other pairs."""
    match call:
        case (file, ast.Call(args=[_, _, permutation])):
            return instead((file, permutation), text)
        case (file, ast.Call(keywords=keywords)):
            given = [keyword.value for keyword in keywords if keyword.arg == "perm"]
            return instead((file, given[0]), text) if given else ()
    return ()
