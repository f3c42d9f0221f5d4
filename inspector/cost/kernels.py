"""Work of custom calls as far as it is known: from the kernel author's own estimate, else nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ...parsers.hlo import Instruction
from ...parsers.hlo.fields import number
from ..catalog.custom_calls import LOCAL
from ..catalog.spellings import CUSTOM_CALLS


def is_estimated(instruction: Instruction) -> bool:
    """Return whether an instruction's time is known: not that of kernels without estimates, or with transfers."""
    if instruction.opcode != "custom-call":
        return True
    target = instruction.attributes.get("custom_call_target", "").strip('"')
    if target in LOCAL or target in CUSTOM_CALLS:
        return True
    return bool(stated(instruction)) and _configuration(instruction).get("has_communication") is not True


def stated(instruction: Instruction) -> dict[str, int]:
    """`flops` and `bytes_accessed` of a Pallas kernel for TPUs with a `cost_estimate`."""
    estimate = _configuration(instruction).get("cost_estimate")
    found = estimate if isinstance(estimate, Mapping) else {}
    return {name: size for name, value in found.items() if (size := number(str(value))) is not None}


def _configuration(instruction: Instruction) -> Mapping[str, object]:
    config = instruction.backend_config
    found = config.get("custom_call_config") if isinstance(config, Mapping) else None
    return found if isinstance(found, Mapping) else {}
