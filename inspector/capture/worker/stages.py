"""The stages of a traced program, sent as they are reached: jaxpr, StableHLO, and what is compiled of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..protocol.events import Arguments, Equations, Memory, Outputs, Peak, Stage
from ..protocol.request import Request, UsageError
from ..protocol.stages import PASSES
from ..protocol.workspace import (
    COMPILER_LOG,
    DUMP,
    EVERY_PASS,
    MAX_OWN,
    SOURCE,
    compiler_options,
    diverted,
    read_messages,
    read_peak,
    read_stages,
)
from . import equation_numbers, modules, tagging
from .channel import Channel
from .kept_programs import compiled_anew
from .program import jaxpr_facts
from .program.avals import devices_of
from .program.compiled import TracedProgram, memory_of, send_actual
from .program.jaxpr_facts import Table
from .simulated.topology import Topology
from .subject import KnownSubject, meshes_in_jaxpr, meshes_in_shardings


class CompiledProgram(NamedTuple):
    """A compiled program, what it was lowered to, its devices in the order of its partitions, and the memory that it
    takes on each."""

    executable: Any
    lowered: Any
    devices: list[Any]
    memory: Memory | None


def send_traced(program: TracedProgram, started: float, subject: KnownSubject, channel: Channel) -> Table:
    """Send the jaxpr, the arguments and the results; tracing began at `started`, by `time.perf_counter`."""
    table = jaxpr_facts.Table(program.jaxpr)
    channel.send(Stage("jaxpr", _since(started), table.encode()))
    channel.send(Arguments(program.arguments))
    channel.send(Outputs(program.outputs))
    subject.add_meshes([*meshes_in_jaxpr(program.jaxpr), *meshes_in_shardings(program.leaves)])
    return table


def send_compiled(
    program: TracedProgram,
    table: Table,
    subject: KnownSubject,
    channel: Channel,
    workspace: str,
    topology: Topology | None = None,
    request: Request | None = None,
) -> CompiledProgram:
    """Lower and compile; send each stage as soon as it is reached, and write the case that the request asks for."""
    channel.enter("lower")
    with _compiler_messages(channel, workspace):
        started = time.perf_counter()
        with equation_numbers.numbered(table.kept) as unnumbered:
            lowered = _lower(program, topology, channel)
        names = tagging.names_of(
            lowered, *([value.path for value in side] for side in (program.arguments, program.outputs))
        )
        equations = equation_numbers.EquationNumbers()
        untaggable = tagging.tag(lowered.compiler_ir("stablehlo"), names, equations)
        stablehlo = modules.text_of(lowered.compiler_ir("stablehlo")).encode()
    channel.send(Stage("stablehlo", _since(started), stablehlo))
    if request is not None and not request.live and len(stablehlo) <= MAX_OWN and b"sdy.mesh" in stablehlo:
        Path(workspace, SOURCE).write_bytes(stablehlo)

    channel.send(Equations(equations.encode()))
    for problem in filter(None, (unnumbered, untaggable)):
        channel.tell("info", problem)

    channel.enter("compile")
    folder = str(Path(workspace, DUMP))
    is_full = request is not None and request.case is not None and request.case_passes
    passes = EVERY_PASS if request is not None and (request.passes or request.case_passes) else PASSES
    options = compiler_options(folder, passes, in_full=is_full)
    compiled, devices = _compile(lowered, channel, workspace, topology, options)
    subject.set_devices(devices)
    if request is not None and request.case is not None:
        from .case import write_case  # few captures are validated

        executable = compiled.executable if topology is not None else compiled.runtime_executable()
        write_case(request.case, request, program, lowered, executable, devices, folder if is_full else None)
    send_actual(program.arguments, program.outputs, compiled, channel, subject.mesh_of(len(devices)))
    memory = memory_of(compiled)
    if memory is not None:
        channel.send(memory)
    if topology is not None:
        _tell_what_differs(topology, program.jaxpr, channel)
    return CompiledProgram(compiled, lowered, devices, memory)


def _compile(
    lowered: Any, channel: Channel, workspace: str, topology: Topology | None, options: dict[str, str | bool]
) -> tuple[Any, list[Any]]:
    """Compile, and send the stages around the partitioner even where that fails after them.

    Gives what was compiled, and its devices in the order of its partitions.
    """
    folder = str(options["xla_dump_to"])
    with _compiler_messages(channel, workspace), compiled_anew():
        started = time.perf_counter()
        try:
            compiled, devices = compile_for(topology, lowered, options)
        finally:
            seconds = _since(started)
            stages = read_stages(folder)
            for name, stage in stages.items():
                channel.send(Stage(name, text=stage))
    channel.send(Stage("hlo", seconds, compiled.as_text().encode()))
    if (peak := read_peak(folder)) is not None:
        channel.send(Peak(peak))
    if "hlo-spmd" not in stages:
        why = "with one device there is nothing to partition" if len(devices) == 1 else "XLA wrote none"
        channel.tell("info", f"no stages around the partitioner: {why}")
    return compiled, devices


def _lower(program: TracedProgram, topology: Topology | None, channel: Channel) -> Any:
    if topology is not None:
        from .simulated.cross_compile import leave_out

        for place, what in leave_out(program.jaxpr, topology.lowering):
            channel.tell("warning", what, place)
    return lower_for(topology, program)


def lower_for(topology: Topology | None, program: TracedProgram) -> Any:
    """The program lowered for this machine, or for another platform."""
    return program.lower() if topology is None else program.lower(lowering_platforms=(topology.lowering,))


def compile_for(topology: Topology | None, lowered: Any, options: dict[str, str | bool]) -> tuple[Any, list[Any]]:
    """The executable of a lowered program, and its devices in the order of its partitions."""
    if topology is None:
        compiled = lowered.compile(compiler_options=options)
        return compiled, devices_of(lowered, compiled.runtime_executable())
    # Not above: with JAX's own devices, what this file is about need not be there.
    from .simulated import cross_compile

    if problem := cross_compile.probe():
        raise UsageError(problem, "the targets cpu and local are compiled for without it")
    found = cross_compile.compile_for(topology, lowered, options)
    return found, found.devices


def _tell_what_differs(topology: Topology, jaxpr: Any, channel: Channel) -> None:
    from .simulated.cross_compile import platform_branches

    for place in topology.queried:
        channel.tell("info", f"jax.default_backend() returned {topology.platform!r}", place)
    for where, branch in platform_branches(jaxpr, topology.lowering):
        channel.tell("info", f"lax.platform_dependent: {branch}", where)


@contextmanager
def _compiler_messages(channel: Channel, workspace: str) -> Iterator[None]:
    log = Path(workspace, COMPILER_LOG)
    try:
        with diverted(log):
            yield
    finally:
        for message in read_messages(log, channel.phase):
            channel.send(message)
        log.unlink(missing_ok=True)


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 6)
