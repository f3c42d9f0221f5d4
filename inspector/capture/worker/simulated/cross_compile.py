"""Compiling for devices that are not there what was lowered for those that stand in for them.

JAX makes up the compiler's options for its own devices; they are taken over from there, with the devices exchanged. No
compiler can make a call to the host for such a device: they are left out, and told of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import compiler
from jax._src.lib import xla_client
from jax.interpreters import mlir

from ...protocol.request import UsageError
from ...protocol.workspace import read_optimized
from ..program.structure import equations_of, place_of
from .topology import Topology

ENTRY = "compile_or_get_cached"
"""The function of `jax._src.compiler` that gets module, options and devices (JAX 0.7 to 0.12)."""

TOOLS = re.compile("No PTX compilation provider|libdevice not found|ptxas|No supported config found")
"""XLA's message where it lacks the tools to compile CUDA kernels."""


def probe() -> str | None:
    """Return what cannot be done with this version of JAX because a function has moved."""
    if not hasattr(compiler, ENTRY):
        return f"JAX {jax.__version__} has no {compiler.__name__}.{ENTRY}: it compiles only for attached devices"
    return None


class CrossCompiled:
    """An executable for devices that are not there, with what a `jax.stages.Compiled` says of one."""

    def __init__(self, executable: Any, devices: list[Any], written: str | None, places: Sequence[int | None]) -> None:
        self.devices = devices
        """In the order of its partitions."""
        self.executable = executable
        self._written = written
        self._places = places

    @property
    def input_shardings(self) -> list[Any]:
        """XLA's sharding of each argument of the function, None for one that the program does not take."""
        known = dict(enumerate(self.executable.get_parameter_shardings() or ()))
        return [None if place is None else known.get(place) for place in self._places]

    @property
    def output_shardings(self) -> list[Any]:
        """XLA's sharding of each result."""
        return list(self.executable.get_output_shardings() or ())

    def as_text(self) -> str:
        """The optimized HLO; as the compiler wrote it, where this JAX cannot read what a newer plugin gives."""
        try:
            return "\n\n".join(module.to_string() for module in self.executable.hlo_modules())
        except jax.errors.JaxRuntimeError:
            if self._written is None:
                raise
            return self._written

    def memory_analysis(self) -> Any:
        """Sizes, as `jax.stages.Compiled.memory_analysis` gives them."""
        return self.executable.get_compiled_memory_stats()


class _Done(BaseException):
    """Ends JAX's own way to an executable, which would go on to load it."""

    def __init__(self, compiled: CrossCompiled) -> None:
        self.compiled = compiled


def compile_for(topology: Topology, lowered: Any, options: dict[str, str | bool]) -> CrossCompiled:
    """Compile, with the stages written to a folder; what the compiler raises passes through."""
    folder = str(options["xla_dump_to"])
    own = getattr(compiler, ENTRY)

    def instead(backend: Any, module: Any, devices: Any, compile_options: Any, *rest: Any, **named: Any) -> Any:
        chosen = topology.stand_for(np.asarray(devices).flat)
        ids = np.array([[device.id for device in chosen]])
        compile_options.device_assignment = xla_client.DeviceAssignment.create(ids)
        client = chosen[0].client
        listed = xla_client.DeviceList(tuple(chosen))
        try:
            executable = client.compile(module, executable_devices=listed, compile_options=compile_options)
        except jax.errors.JaxRuntimeError as error:
            if TOOLS.search(str(error)):
                first = str(error).partition("\n")[0][:200]
                message = f"a tool of the compiler for {topology.lowering} is not installed: {first}"
                raise UsageError(message, "`shardscope targets` says what to install") from None
            raise
        raise _Done(CrossCompiled(executable, chosen, read_optimized(folder), _places(lowered)))

    setattr(compiler, ENTRY, instead)
    try:
        lowered.compile(compiler_options={**topology.compiler_options, **options})
    except _Done as done:
        return done.compiled
    finally:
        setattr(compiler, ENTRY, own)
    raise RuntimeError(f"{ENTRY} was not called")


def _places(lowered: Any) -> list[int | None]:
    """The number of the parameter that each argument is, None for one that nothing uses (JAX 0.7 to 0.12)."""
    lowering = getattr(lowered, "_lowering", None)
    used = getattr(lowering, "compile_args", {}).get("kept_var_idx", ())
    kept = {index: place for place, index in enumerate(sorted(used))}
    constants = len(getattr(lowering, "const_args", ()))
    return [kept.get(index + constants) for index in range(lowered.in_tree.num_leaves)]


CALLBACKS = ("debug_callback", "debug_print", "pure_callback", "io_callback")
"""Primitives that call the host (jax._src.callback and jax._src.debugging, JAX 0.7 to 0.12)."""


def leave_out(jaxpr: Any, platform: str) -> Iterator[tuple[str | None, str]]:
    """Have them lowered to nothing for a platform; says where each is, and what stands for it, in words."""
    for equation in equations_of(jaxpr):
        primitive = equation.primitive
        if primitive.name in CALLBACKS:
            mlir.register_lowering(primitive, _zeros, platform=platform)
            instead = "it returns zeros" if equation.outvars else "with the computations only for it"
            yield (
                place_of(equation),
                f"{primitive.name} was removed, {instead}: there is no host to call on this target",
            )


def _zeros(ctx: Any, *operands: Any, **_: Any) -> Any:
    avals = ctx.avals_out
    zeros = mlir.lower_fun(lambda *_: [jnp.zeros(aval.shape, aval.dtype) for aval in avals], multiple_results=True)
    return zeros(ctx, *operands)


def platform_branches(jaxpr: Any, platform: str) -> Iterator[tuple[str | None, str]]:
    """For each choice by platform in a program: where it is made, and what is taken, in words."""
    for equation in equations_of(jaxpr):
        if equation.primitive.name == "platform_index":
            yield place_of(equation), _taken(equation.params.get("platforms", ()), platform)


def _taken(platforms: Any, platform: str) -> str:
    names = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}.get(platform, (platform,))
    for choice in platforms:
        if choice is not None and set(choice) & set(names):
            return f"the branch for {platform} was taken"
    return f"the default was taken: there is no branch for {platform}"
