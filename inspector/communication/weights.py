"""The arguments of a program that it trains, by their paths and those of its outputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..capture.model import Value

REF = "Ref{"
"""The start of the type of an array that is updated in place."""

ROOT = re.compile(r"\A\w*")
"""The parameter of the function in the path of an argument: `params` of `params['w']`."""

_WRAPPED = re.compile(r"""\w*(?:\[\d+\])+(?=\.|\[['"])""")
"""The same with the indices of a wrapper's tuple, as Equinox and Haliax have them: `x[1][0]` of `x[1][0].w`."""

_STEP = re.compile(r"[.\[]")
"""The start of a step in a path."""


def weights_of(arguments: Sequence[Value], outputs: Sequence[Value]) -> Iterable[str]:
    """The arguments that come back updated, or whose gradients do: refs, and those of an output's path and type."""
    returned = {output.type for output in outputs}
    leaves = {(output.type, output.path[at.start() :]) for output in outputs for at in _STEP.finditer(output.path)}
    alike = Counter(argument.type for argument in arguments)
    wrapped: dict[tuple[str, str], list[str]] = {}
    found = set[tuple[str, str]]()
    for argument in arguments:
        leaf = ROOT.sub("", argument.path)
        inner = argument.type, _WRAPPED.sub("", argument.path, count=1)
        is_alone = not leaf and argument.type in returned and alike[argument.type] == 1
        if is_alone or (argument.type, leaf) in leaves or argument.type.startswith(REF):
            found.add(inner)
            yield argument.path
        elif inner in leaves:
            wrapped.setdefault(inner, []).append(argument.path)
    for inner, paths in wrapped.items():
        yield from paths if inner not in found else ()
