"""Modules that are no text: protocol buffers of HLO and bytecode of MLIR, printed by the interpreter's own jaxlib."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

from ..protocol.memory import available_bytes


def main() -> None:
    """Print, as text, the module that standard input holds."""
    data = sys.stdin.buffer.read()
    limit(len(data))
    try:
        text = _mlir_text(data) if data.startswith(b"ML\xefR") else _hlo_text(data)
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


BYTES, BYTES_OF_ONE = 1 << 32, 400
SECONDS, SECONDS_OF_MEBIBYTE = 30, 2
"""Limits of jaxlib, which takes 8 GB for a damaged file of 7 kB; and what a byte, or mebibyte, of the file adds."""


def limit(size: int) -> None:
    """Bound the memory and the processor time of this process, where the system has such bounds."""
    try:
        import resource
    except ImportError:
        return
    most_bytes, available = BYTES + BYTES_OF_ONE * size, available_bytes()
    limits = {
        resource.RLIMIT_DATA: most_bytes if available is None else min(most_bytes, available),
        resource.RLIMIT_CPU: SECONDS + SECONDS_OF_MEBIBYTE * (size >> 20),
    }
    for kind, most in limits.items():
        soft, hard = resource.getrlimit(kind)
        known = [most, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
        resource.setrlimit(kind, (min(known), hard))


def _mlir_text(data: bytes) -> str:
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    module: Any
    try:
        # What `jax.export` serializes; it reads other bytecode too.
        module = stablehlo.deserialize_portable_artifact(context, data)
    except Exception:
        module = ir.Module.parse(data, context)
    return str(module.operation.get_asm(enable_debug_info=True))


def _hlo_text(data: bytes) -> str:
    module = _hlo_module()
    errors = []
    for proto in _protos(data):
        try:
            return str(module.from_serialized_hlo_module_proto(proto).to_string())
        except Exception as error:
            errors.append(error)
    raise errors[0]


def _hlo_module() -> Any:
    for name in ("jaxlib._hlo", "jaxlib._jax", "jaxlib.xla_extension"):
        try:
            return importlib.import_module(name).HloModule
        except (ImportError, AttributeError):
            continue
    raise ImportError("this jaxlib has no HloModule")


def _protos(data: bytes) -> Iterator[bytes]:
    """The HloModuleProto that an HloProto has as its first field, where that may be one, and the data itself."""
    length = shift = 0
    for place, byte in enumerate(data[1:11], 2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if data[place : place + 1] == b"\n":
                yield data[place : place + length]
            break
    yield data
