"""The record of one program: its entry in the list, and its capture, with the stages of `shardscope run`."""

from __future__ import annotations

import hashlib
import linecache
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jaxlib
from jax._src import source_info_util

from ....catalog.spellings import HLO_OPCODES
from ...protocol.events import End, Script, Stage
from ...protocol.request import Request
from ...protocol.trace import Backend, CompiledProgram, TraceOptions
from .. import failures, patches
from ..channel import Channel
from ..inputs.resolve import Resolved
from ..program.avals import devices_of, partition_devices
from ..program.compiled import TracedProgram, memory_of, send_actual
from ..script_objects import variable
from ..subject import KnownSubject, meshes_in_shardings
from .files import CaptureFile
from .lowering import Lowering, plain_name
from .origins import (
    Settings,
    bound_values,
    call_on_stack,
    context_axes,
    context_meshes,
    jit_options,
    source_of,
    static_arguments_of,
    structure_of,
    values_of,
)
from .wrapped import find_wrapped as find_wrapped

CACHE_HIT = "/jax/compilation_cache/cache_hits"
"""The event of `jax.monitoring` for a program found in the persistent cache."""

is_listening = False


def listen(hit_cache: Callable[[], None]) -> None:
    """Have JAX say when its persistent cache has a program."""
    global is_listening
    is_listening = True
    jax.monitoring.register_event_listener(lambda event, **_: hit_cache() if event == CACHE_HIT else None)


def leave_no_frames() -> None:
    """Keep our frames out of source locations: JAX traces operations outside of jit when it lowers them.

    The function is that of `jax.extend.source_info_util`, whose import costs a tenth of JAX's.
    """
    source_info_util.register_exclusion(failures.HERE)


def module_name(module: Any) -> str:
    """The name of a module that JAX lowered, without `jit_`."""
    return plain_name(str(module.operation.attributes["sym_name"]).strip('"'))


def backend() -> Backend:
    """The devices of this process."""
    devices = jax.devices()
    return Backend(
        jax.__version__,
        jaxlib.__version__,
        jax.default_backend(),
        str(devices[0].device_kind),
        len(devices),
        jax.process_index(),
        jax.process_count(),
        jax.local_device_count(),
    )


def capture(lowering: Lowering, options: TraceOptions, file: CaptureFile, topology: Any = None) -> None:
    """Lower and compile a program once more, and write all stages; whatever goes wrong is written as well."""
    from ...protocol.workspace import DUMP, keep_propagation  # not above: a list of programs does without
    from ..in_process import uncached
    from ..recording import tell_what_has_moved
    from ..stages import send_compiled, send_traced

    channel = Channel(file.write)
    if lowering.lower is None:
        channel.tell("warning", "JAX did not lower this program where it is listened to: there is its HLO alone")
        return
    program = _traced(lowering)
    subject = _subject(lowering, program, options, channel, topology)
    try:
        tell_what_has_moved(channel)
        table = send_traced(program, time.perf_counter(), subject, channel)
        with uncached(), tempfile.TemporaryDirectory(dir=file.path.parent) as workspace:
            send_compiled(program, table, subject, channel, workspace, topology)
            keep_propagation(str(Path(workspace, DUMP)), file.path)
        channel.send(End(channel.now()))
    except Exception as error:
        channel.send(failures.describe(error, channel.phase))


def describe(
    lowering: Lowering,
    computation: Any,
    executable: Any,
    path: Path,
    options: TraceOptions,
    settings: Settings | None = None,
    **more: Any,
) -> CompiledProgram:
    """The entry of a program, with `more` fields; its capture, of what is compiled, if it is one of the user's."""
    arguments = lowering.arguments
    source = source_of(lowering)
    internal = not lowering.is_earlier and (
        source is None or (failures.is_part_of_jax(source.file) and not lowering.is_jitted_by_user)
    )
    loaded = getattr(executable, "xla_executable", executable)
    text = None if loaded is None else "\n\n".join(module.to_string() for module in loaded.hlo_modules())
    among = None if computation is None else shared(computation)
    is_wanted = among is not None or (text is not None and (not internal or _may_communicate(text)))
    if is_wanted and not lowering.captured:
        file = CaptureFile(path)
        _send_compiled_alone(lowering, computation, executable, text, among, options, Channel(file.write))
        file.close()
        lowering.captured = "compiled"
    ids = () if computation is None else tuple(int(device.id) for device in partition_devices(computation))
    caller = lowering.caller
    return CompiledProgram(
        number=lowering.number or 0,
        id=lowering.id,
        name=lowering.name,
        source=source,
        call=call_on_stack(),
        internal=internal,
        arguments=values_of(lowering)[0],
        static=static_arguments_of(caller),
        keywords=tuple(sorted(caller.get("kwargs", {}))),
        transformed=not internal and caller.get("") == "call_impl_cache_miss",
        context=context_axes(arguments),
        devices=len(ids) or (0 if loaded is None else len(loaded.local_devices())),
        lower_seconds=round(lowering.seconds, 6),
        compile_seconds=round(lowering.compile_seconds, 6),
        cached=lowering.cached,
        captured=lowering.captured,
        processes=1 if among is None else among.processes,
        fingerprint="" if among is None else among.fingerprint,
        device_ids=ids,
        bound=bound_values(caller.get("fun")),
        options=(*jit_options(caller.get("jit_info"), arguments), *(settings.changed() if settings else ())),
        structure=structure_of(caller),
        earlier=lowering.is_earlier,
        **more,
    )


def _may_communicate(text: str) -> bool:
    return any(f"{opcode}(" in text or f"{opcode}-start(" in text for opcode in (*HLO_OPCODES, "custom-call"))


def _send_compiled_alone(
    lowering: Lowering,
    computation: Any,
    executable: Any,
    text: str | None,
    among: Shared | None,
    options: TraceOptions,
    channel: Channel,
) -> None:
    """Send the compiled program, and for one of several processes what these compare."""
    if lowering.lower is not None:
        program = _traced(lowering)
        subject = _subject(lowering, program, options, channel)
        channel.tell("info", f"stages are missing; trace --match {lowering.name} records all of them")
        subject.add_meshes(meshes_in_shardings(program.leaves))
    if among is not None:
        channel.send(Stage("stablehlo", round(lowering.seconds, 6), among.stablehlo))
    if text is None:
        return
    memory = None
    if lowering.lower is not None:
        lowered = _lowered(_Compiled(computation, executable), lowering)
        compiled = lowered.compile()
        subject.set_devices(devices_of(lowered, compiled.runtime_executable()))
        send_actual(program.arguments, program.outputs, compiled, channel)
        memory = memory_of(compiled)
    channel.send(Stage("hlo", round(lowering.compile_seconds, 6), text.encode()))
    if memory is not None:
        channel.send(memory)
    channel.send(End(channel.now()))


class _Compiled:
    def __init__(self, computation: Any, executable: Any) -> None:
        self._computation = computation
        self._executable = executable

    def compile(self, **_: Any) -> Any:
        return self._executable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._computation, name)


def _traced(lowering: Lowering) -> TracedProgram:
    """The program as `lower_sharding_computation` was given it; it is lowered anew as a copy, which JAX does not know.

    JAX keeps what it lowered by the identity of the jaxpr.
    """
    arguments = lowering.arguments
    jaxpr = _copy(arguments["closed_jaxpr"])

    def lower(lowering_platforms: tuple[str, ...] | None = None) -> Any:
        assert lowering.lower is not None
        changed = {"closed_jaxpr": jaxpr}
        if lowering_platforms is not None:
            changed["lowering_platforms"] = lowering_platforms
        return _lowered(lowering.lower(**{**arguments, **changed}), lowering)

    leaves = [*arguments["in_shardings"], *arguments["out_shardings"], *context_meshes(arguments)]
    return TracedProgram(jaxpr, *values_of(lowering), leaves, lower)


def _copy(jaxpr: Any) -> Any:
    inner = jaxpr.jaxpr
    return jaxpr.replace() if inner is jaxpr else jaxpr.replace(jaxpr=inner.replace())


def _lowered(computation: Any, lowering: Lowering) -> Any:
    jaxpr = lowering.arguments["closed_jaxpr"]
    donated = lowering.arguments["donated_invars"]
    infos = tuple(jax.stages.ArgInfo(aval, bool(given)) for aval, given in zip(jaxpr.in_avals, donated, strict=True))
    out_tree = jax.tree.structure(tuple(range(len(jaxpr.out_avals))))
    return jax.stages.Lowered(computation, (infos, {}), out_tree)


def _subject(
    lowering: Lowering, program: TracedProgram, options: TraceOptions, channel: Channel, topology: Any = None
) -> KnownSubject:
    source = source_of(lowering)
    if source is not None and failures.is_part_of_jax(source.file) and not lowering.is_jitted_by_user:
        source = call_on_stack() or source  # an operation outside of jit: it is JAX's, and the call is the script's
    module = _module(source.file if source else "")
    file = getattr(module, "__file__", None)
    if file is not None and file.endswith(".py") and (text := _script(file)):
        channel.send(Script(file, text))
    request = Request(f"{file or module.__name__}:{lowering.name}", target=options.target, live=False)
    return KnownSubject(request, Resolved(None, "", module, module), channel, topology)


def _script(file: str) -> bytes:
    """The text of a script, also that of a notebook's cell, which is no file; empty where it is gone."""
    try:
        return patches.text_of(file)
    except OSError:
        return "".join(linecache.getlines(file)).encode()


def _module(file: str) -> ModuleType:
    """The module that was loaded from a file; an empty one that names the file, where it is gone."""
    for module in list(sys.modules.values()):
        if variable(module, "__file__") == file:
            return module
    unknown = ModuleType("unknown")
    unknown.__file__ = file or None
    return unknown


class Shared(NamedTuple):
    """A program of several processes: how many, what it runs on, and what is equal where they run the same."""

    processes: int
    device_ids: tuple[int, ...]
    fingerprint: str
    stablehlo: bytes


def shared(computation: Any) -> Shared | None:
    """Return what several processes share of a program that JAX lowered; None for a program of one process alone."""
    devices = partition_devices(computation)
    processes = {device.process_index for device in devices}
    if len(processes) < 2:
        return None
    operation = computation._hlo.operation
    ids = tuple(int(device.id) for device in devices)
    options = sorted(map(repr, getattr(computation, "_compiler_options_kvs", ())))
    same = hashlib.sha256(operation.get_asm(enable_debug_info=False).encode())
    same.update(repr((ids, options)).encode())
    located = operation.get_asm(enable_debug_info=True)
    return Shared(len(processes), ids, same.hexdigest()[:16], located.encode())
