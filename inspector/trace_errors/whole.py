"""Operations of explicit types along a dimension that has to be unsharded."""

from __future__ import annotations

import re

from ..report import Explanation, Fix, StoryStep
from .explicit_specs import SPEC, Spec, spec_of, spec_of_type, text_of
from .failed import Failed
from .operands import resharded

_TYPE = r"(?P<type>\w+\[\S*?\])"
_SPEC = SPEC.replace("((?:", "(?P<spec>(?:", 1)

WHOLE = re.compile(
    "|".join(
        each.replace("(?P<", f"(?P<_{number}_")
        for number, each in enumerate(
            (
                rf"unsharded over the axis being reduced\. Got input type=\S*?{_TYPE}\)? and axis=(?P<dim>\d+)",
                rf"over the sorting dimension\. Got arg sharding=.*?spec={_SPEC}\) and sorting dimension=(?P<dim>\d+)",
                rf"compute the top_k values\. Got input type=\S*?{_TYPE}\)? and axis=(?P<dim>\d+)",
                rf"sharded on dimension (?P<dim>\d+) when the tiling is non-trivial\. Got input type: \S*?{_TYPE}",
                rf"sharded on the unstacking axis (?P<dim>\d+)\. Got operand type=\S*?{_TYPE}",
                rf"0th dimension of all xs should be replicated\. Got {_SPEC}(?P<first>)",
                rf"fully replicated when axis is not specified to \w+\. Got input type=\S*?{_TYPE}(?P<every>)",
                rf"Input (?P<number>\d+) to \w+ must be unsharded on non-batch dimensions, but got {_SPEC}",
                rf"on sharded dims where out dim .*? with spec \((?P<axes>.*?)\) is not.*? input type=\S*?{_TYPE}",
            )
        )
    ),
    re.DOTALL,
)


def explain_whole(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """Explain which dimension is sharded, and reshard the operand so that it is not."""
    found = {name.split("_", 2)[2]: text for name, text in said.groupdict().items() if text is not None}
    spec = spec_of(found["spec"]) if "spec" in found else spec_of_type(found["type"])
    dims = [dim for dim in _dims(found, spec) if dim < len(spec) and spec[dim]]
    if not dims:
        return None
    whole: Spec = tuple(() if dim in dims else axes for dim, axes in enumerate(spec))
    named = ", ".join(map(str, dims))
    dimension = f"dimension{'s' if len(dims) > 1 else ''} {named}"
    axes = ", ".join(repr(axis) for dim in dims for axis in spec[dim])
    title = f"reshard the operand to {text_of(whole)}: every device gathers {dimension}"
    return Explanation(
        f"the operation works along {dimension}, which is sharded over {axes}",
        (StoryStep(f"its operand is sharded as {text_of(spec)}", failed.place),),
        tuple(Fix(title, edits) for edits in resharded(failed, int(found.get("number", 0)), whole)),
    )


def _dims(found: dict[str, str], spec: Spec) -> list[int]:
    if "dim" in found:
        return [int(found["dim"])]
    if "first" in found:
        return [0]
    if "number" in found:
        return [len(spec) - 2, len(spec) - 1]
    if "axes" in found:
        axes = tuple(re.findall(r"\w+", found["axes"]))
        return [dim for dim, over in enumerate(spec) if over == axes]
    return list(range(len(spec)))
