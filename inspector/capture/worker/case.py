"""The files of a validation: the HLO that the compiler was given and that it returned, and values of all parameters.

`inspector/evaluate/` reads them. Touches `HloPrintOptions`, `GSPMDSharding`, and of a lowering `compile_args`
and `const_args` (JAX 0.7 to 0.12).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lib import xla_client
from jax._src.sharding_impls import GSPMDSharding

from ..protocol.case import INPUTS, OPTIMIZED, PASSES, PROGRAM, SOURCE, UNAVAILABLE
from ..protocol.request import Request
from .inputs.arguments import concrete
from .probes.live import holds
from .probes.partial import whole
from .program.compiled import TracedProgram, tiled

MAX_BYTES = 1 << 30
"""Bytes of parameters in all that are written."""


def write_case(
    folder: str,
    request: Request,
    program: TracedProgram,
    lowered: Any,
    executable: Any,
    devices: Sequence[Any],
    dump: str | None = None,
) -> None:
    """Write the case of a compiled program to a folder, or why there is none.

    `dump` is the folder with the module after each pass of the compiler, if that is wanted too. Arguments without
    values get random ones.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    try:
        _write(place, request, program, lowered, executable, list(devices))
        if dump is not None:
            shutil.copytree(dump, place / PASSES, dirs_exist_ok=True)
    except Exception as error:  # of JAX's private parts any may have moved
        (place / UNAVAILABLE).write_text(f"{type(error).__name__}: {error}")


def _write(
    place: Path, request: Request, program: TracedProgram, lowered: Any, executable: Any, devices: list[Any]
) -> None:
    lowering = lowered._lowering
    constants = list(getattr(lowering, "const_args", ()))
    leaves = list(program.leaves[: len(program.arguments)])
    seed, gentle = request.seed, request.gentle
    given = [*constants, *(concrete(leaf, seed, index, gentle=gentle) for index, leaf in enumerate(leaves))]
    paths = [*("a constant" for _ in constants), *(value.path for value in program.arguments)]
    kept = sorted(lowering.compile_args["kept_var_idx"])
    values = [_array(given[index]) for index in kept]
    if (size := sum(value.nbytes for value in values)) > MAX_BYTES:
        raise ValueError(f"the arguments have {size / 1e9:.1f} GB; up to {MAX_BYTES / 1e9:.1f} GB are evaluated")
    results = lowering.compile_args["global_out_avals"]  # those of Refs come after the function's own
    shapes = [_shape(result) for result in results]
    parameters = executable.get_parameter_shardings() or [None] * len(values)
    if len(parameters) != len(values):
        raise ValueError("the program has parameters that are no arguments, as Refs that the function closes over")
    outputs = executable.get_output_shardings() or [None] * len(shapes)
    (place / SOURCE).write_text(_text([lowered.compiler_ir("hlo").get_hlo_module()]))
    (place / OPTIMIZED).write_text(_text(executable.hlo_modules()))
    np.savez(place / INPUTS, *values)
    names = [value.path for value in program.outputs]
    described = {
        "devices": len(devices),
        "compiler": _compiler(devices[0]),
        "slices": [(device.id, getattr(device, "slice_index", None) or 0) for device in devices],
        "parameters": [
            {"path": paths[index], "blocks": _blocks(sharding, value.shape, devices)}
            for index, sharding, value in zip(kept, parameters, values, strict=True)
        ],
        "outputs": [
            {
                "path": names[number] if number < len(names) else f"result[{number}]",
                "shape": shape,
                "blocks": _blocks(sharding, shape, devices),
            }
            for number, (sharding, shape) in enumerate(zip(outputs, shapes, strict=True))
        ],
    }
    (place / PROGRAM).write_text(json.dumps(described))


PLUGINS = {"tpu": ("libtpu",), "gpu": ("jax-cuda13-plugin", "jax-cuda12-plugin", "jax-rocm7-plugin")}
"""The packages with the compiler of a platform."""


def _compiler(device: Any) -> str:
    said = " ".join(str(getattr(device.client, "platform_version", "")).split())
    library = os.environ.get("TPU_LIBRARY_PATH")
    for name in PLUGINS.get(device.platform, ()):
        with suppress(importlib.metadata.PackageNotFoundError, AttributeError):
            package = importlib.util.find_spec(name.replace("-", "_"))
            if name != "libtpu" or library is None or Path(library).parent == Path(package.origin).parent:  # type: ignore
                return f"{name} {importlib.metadata.version(name)} ({said})"
    return said


def _array(value: Any) -> Any:
    """The whole value, in the bits of the parameter; narrow floats in 32, and narrow integers in 8, which numpy has."""
    if holds(value):
        value = value[...]
    if jnp.issubdtype(getattr(value, "dtype", None), jax.dtypes.prng_key):
        value = jax.random.key_data(value)
    array = whole(value) if isinstance(value, jax.Array) else np.asarray(value)
    if array.dtype.kind in "biufc":
        return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array.astype(np.float32)
    return array.astype(np.uint8 if str(array.dtype).startswith("uint") else np.int8)


def _shape(result: Any) -> tuple[int, ...]:
    if jnp.issubdtype(result.dtype, jax.dtypes.prng_key):
        return tuple(jax.eval_shape(jax.random.key_data, result).shape)
    return tuple(map(int, result.shape))


def _blocks(sharding: Any, shape: tuple[int, ...], devices: list[Any]) -> list[list[tuple[int, int]]]:
    """For each device, the start and the end of its block in each dimension."""
    if sharding is None:
        return [[(0, size) for size in shape]] * len(devices)
    known = tiled(sharding)
    if known.is_manual() or (hasattr(known, "is_unreduced") and known.is_unreduced()):
        raise ValueError(f"a parameter or result is sharded as {known}")
    blocks = GSPMDSharding(tuple(devices), known).devices_indices_map(shape)
    return [[part.indices(size)[:2] for part, size in zip(blocks[each], shape, strict=True)] for each in devices]


def _text(modules: Sequence[Any]) -> str:
    if len(modules) != 1:
        raise ValueError(f"the compiler returned {len(modules)} modules")
    options = getattr(xla_client, "hlo", xla_client._xla).HloPrintOptions()
    options.print_large_constants = True
    return str(modules[0].to_string(options))
