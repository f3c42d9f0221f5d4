"""What communicates, or may, without a collective: kernels with remote copies, and calls of which nothing is known."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..catalog.spellings import is_kernel
from ..ir.derived import derived
from ..ir.jaxpr import Equation
from ..ir.jaxpr_text import EquationPlace, JaxprText
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import SourcePosition, UncountedCommunication

_TO_ANOTHER_DEVICE = re.compile(r"\b(?:PeerMemRef|RemoteRef|MulticastRef)\b")
_DEVICE_OF_COPY = re.compile(r"PyTreeDef\(\((?:[^,()]|\([^()]*\))+(?:, (?:[^,()]|\([^()]*\))+){3}, (?!None)")
"""The tree of a copy's operands: source, destination, their semaphores, and the device, None for this one."""

_DEVICE_OF_SIGNAL = re.compile(r"PyTreeDef\([\[(](?:\*|\([^()]*\)), (?:\*|\([^()]*\)), \*, (?!None)")
"""Semaphore, its transforms, the increment, the device."""

_TARGET = re.compile(r'custom_call_target="([^"]*)"')

_KERNELS = ("tpu_custom_call", "mosaic_gpu", "triton_kernel_call", "__gpu$xla.gpu.triton")
_HARMLESS = re.compile(
    r"__cublas|__cudnn|__onednn|__hipblas|cu(?:blas|dnn|solver|fft|sparse|_)|hip|lapack|blas|ducc|fft|Sharding|SPMD|xla\.|xla_"
    r"|TopK|ApproxTopK|PartialReduce|AllocateBuffer|Move[Tt]o|annotate_device|PadToStatic|SliceToDynamic|ConvertLayout"
    r"|LayoutConstraint|RngBitGenerator|X64|Assume|inspect_sharding|Qr|Householder|Eigh|Cholesky|Lu|Triangular"
    r"|Pin|Unpin|Bitcast|ProductOfElementaryHouseholderReflectors|InspectSharding|HostCompute|Eigen|Erf|Topk"
)
"""Beginnings of the targets of calls that stay on their device, or are collectives already."""


def uncounted_communication(program: Program) -> tuple[UncountedCommunication, ...]:
    """The remote copies and signals of kernels by the jaxpr, and custom calls of which nothing is known by the HLO."""
    jaxpr = program.jaxpr
    stage = next(filter(None, map(program.stage, ("hlo", "hlo-spmd", "hlo-before"))), None)
    calls = () if stage is None else _unknown_calls(stage, jaxpr is None)
    return (*(() if jaxpr is None else _in_kernels(jaxpr)), *calls)


@derived
def _in_kernels(jaxpr: JaxprText) -> tuple[UncountedCommunication, ...]:
    kernels = [place for place in jaxpr.equations if is_kernel(place.equation.primitive)]
    return tuple(dict.fromkeys(found for place in kernels for found in _in_kernel(jaxpr, place)))


def _in_kernel(jaxpr: JaxprText, kernel: EquationPlace) -> Iterator[UncountedCommunication]:
    name = dict(kernel.equation.params).get("name", kernel.equation.primitive).strip("'")
    waiting, seen = [body for _, body in kernel.equation.bodies], set[int]()
    while waiting:
        body = waiting.pop()
        if body in seen or not 0 <= body < len(jaxpr.program.jaxprs):
            continue
        seen.add(body)
        inside = jaxpr.program.jaxprs[body]
        types = {variable.name: variable.type for variable in (*inside.constants, *inside.inputs)}
        for equation in inside.equations:
            waiting += [inner for _, inner in equation.bodies]
            types |= {variable.name: variable.type for variable in equation.outputs}
            does = _reaches(equation)
            if does is not None:
                stack = jaxpr.stack(equation) or jaxpr.stack(kernel.equation)
                source = SourcePosition(stack, "exact" if stack else "none")
                moved = types.get(equation.inputs[0]) if does == "copy" and equation.inputs else None
                yield UncountedCommunication(name, "signal" if does == "signal" else "copy", _held(moved), source)


def _reaches(equation: Equation) -> str | None:
    """What an equation of a kernel does on another device."""
    params = " ".join(text for _, text in equation.params)
    if _TO_ANOTHER_DEVICE.search(params):
        return "copy"
    if equation.primitive == "dma_start" and _DEVICE_OF_COPY.search(params):
        return "copy"
    return "signal" if equation.primitive == "semaphore_signal" and _DEVICE_OF_SIGNAL.search(params) else None


def _held(type: str | None) -> str | None:
    """The type of what a Ref holds."""
    inner = None if type is None else re.search(r"\{(.*)\}", type)
    return inner[1] if inner is not None and type is not None and type.startswith("Ref") else type


@derived
def _unknown_calls(stage: ParsedStage, with_kernels: bool) -> tuple[UncountedCommunication, ...]:
    """Custom calls that may communicate; kernels among them only where no jaxpr says what they do."""
    module = stage.hlo
    if module is None:
        return ()
    found: dict[UncountedCommunication, None] = {}
    for instruction in module.with_opcode({"custom-call"}):
        target = _TARGET.search(instruction.text)
        name = "" if target is None else target[1]
        is_known_kernel = name.startswith(_KERNELS)
        if _HARMLESS.match(name) or (is_known_kernel and not with_kernels):
            continue
        if name.startswith("tpu_custom_call") and '"has_communication":true' not in instruction.text:
            continue
        source = SourcePosition(instruction.frames, "exact" if instruction.frames else "none")
        found[UncountedCommunication(name or "custom call", "unknown", None, source)] = None
    return tuple(found)
