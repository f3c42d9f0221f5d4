"""Permutations of devices in the user's source."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .calls import Call
from .edits import Edits, extent, instead


def permutation_text(destinations: Sequence[int]) -> str:
    """Return the pairs of a permutation of all devices as code, given where each device sends to."""
    size, shift = len(destinations), destinations[0]
    if all(to == (device + shift) % size for device, to in enumerate(destinations)):
        return f"[(i, (i + {shift}) % {size}) for i in range({size})]"
    return repr(list(enumerate(destinations)))


def with_permutation(call: Call | None, text: str) -> Edits:
    """Return a ppermute with other pairs; nothing where they are written elsewhere, as in a `partial`."""
    if call is None:
        return ()
    file, node = call
    given = [*node.args[2:3], *(keyword.value for keyword in node.keywords if keyword.arg == "perm")]
    return instead((file, given[0]), text) if given and _is_inside(given[0], node) else ()


def _is_inside(part: ast.expr, whole: ast.expr) -> bool:
    inner, outer = extent(part), extent(whole)
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]
