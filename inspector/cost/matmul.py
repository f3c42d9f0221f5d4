"""Floating-point operations of matrix products and convolutions: two for each multiplication that is summed up.

Only where an element of the input meets one of the kernel is anything multiplied (as in XLA's HloCostAnalysis,
xla/service/hlo_cost_analysis.cc): TPUs write batched products as convolutions over padding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...parsers.hlo import ArrayShape, Instruction
from ...parsers.hlo.fields import number
from ...parsers.hlo.types import HloType, leaves

MAX_WINDOW = 1 << 20
"""Positions of output times kernel along one dimension that are looked at one by one."""

_LABELS = re.compile(r"(\w+)_(\w+)->(\w+)")
_FIELD = re.compile(r"(\w+)=(\S+)")


def matmul_flops(instruction: Instruction, operands: Sequence[HloType | None]) -> int | None:
    """The operations of a dot, a convolution, or a call of a library for one; None for anything else."""
    result = next((leaf for leaf in leaves(instruction.type) if isinstance(leaf, ArrayShape)), None)
    left = operands[0] if operands else None
    if result is None or not isinstance(left, ArrayShape):
        return None
    match instruction.opcode:
        case "dot":
            return _dot(result, left, _integers(instruction.attributes.get("lhs_contracting_dims", "")))
        case "convolution":
            return _convolution(instruction, result, operands)
        case "custom-call":
            if "dim_labels" in instruction.attributes:
                return _convolution(instruction, result, operands)
            contracting = _of_library(instruction)
            return None if contracting is None else _dot(result, left, contracting)
    return None


def _dot(result: ArrayShape, left: ArrayShape, contracting: Sequence[int]) -> int:
    return 2 * math.prod(result.dims) * math.prod(left.dims[axis] for axis in contracting if axis < len(left.dims))


def _of_library(instruction: Instruction) -> list[int] | None:
    """The contracting dimensions that a call of cuBLAS, or of hipBLAS, has in its configuration."""
    match instruction.backend_config:
        case {"gemm_backend_config": {"dot_dimension_numbers": {"lhs_contracting_dimensions": list(found)}}}:
            axes = [number(str(axis)) for axis in found]
            return None if None in axes else [axis for axis in axes if axis is not None]
    return None


def _convolution(instruction: Instruction, result: ArrayShape, operands: Sequence[HloType | None]) -> int | None:
    """Return None also where attributes are no numbers, or name dimensions that there are not."""
    try:
        return _products(instruction, result, operands)
    except ValueError:
        return None


def _products(instruction: Instruction, result: ArrayShape, operands: Sequence[HloType | None]) -> int | None:
    labels = _LABELS.match(instruction.attributes.get("dim_labels", ""))
    kernel = operands[1] if len(operands) > 1 else None
    image = operands[0]
    if labels is None or not isinstance(kernel, ArrayShape) or not isinstance(image, ArrayShape):
        return None
    of_image, of_kernel, of_result = labels.groups()
    if any(len(names) != len(of.dims) for names, of in zip(labels.groups(), (image, kernel, result), strict=True)):
        return None
    spatial = [name for name in of_result if name.isdigit()]
    window = dict(_FIELD.findall(instruction.attributes.get("window", "").strip("{}")))
    met = 1
    for at, name in enumerate(spatial):
        met *= _meetings(
            image.dims[of_image.index(name)],
            kernel.dims[of_kernel.index(name)],
            result.dims[of_result.index(name)],
            _part(window.get("stride"), at, 1),
            _integer(_text(window.get("pad"), at, "0_0").partition("_")[0]),
            _part(window.get("lhs_dilate"), at, 1),
            _part(window.get("rhs_dilate"), at, 1),
        )
    around = result.dims[of_result.index("b")] * result.dims[of_result.index("f")]
    return 2 * around * kernel.dims[of_kernel.index("i")] * met


def _meetings(
    image: int, kernel: int, result: int, stride: int, before: int, image_dilation: int, kernel_dilation: int
) -> int:
    """Return how often an element of the image and one of the kernel meet, along one dimension."""
    if kernel * result > MAX_WINDOW:
        return kernel * result
    meetings = 0
    for at in range(kernel):
        shift = at * kernel_dilation - before
        for to in range(result):
            place, rest = divmod(to * stride + shift, image_dilation)
            meetings += rest == 0 and 0 <= place < image
    return meetings


def _part(text: str | None, at: int, default: int) -> int:
    if (found := _integer(_text(text, at, str(default)))) < 1:
        raise ValueError(f"{found} between positions")
    return found


def _text(text: str | None, at: int, default: str) -> str:
    parts = text.split("x") if text else []
    return parts[at] if at < len(parts) else default


def _integer(text: str) -> int:
    if (found := number(text.removeprefix("-"))) is None:
        raise ValueError(f"{text} is no number")
    return -found if text.startswith("-") else found


def _integers(text: str) -> list[int]:
    parts = (number(part.strip()) for part in text.strip("{} ").split(","))
    return [part for part in parts if part is not None]
