"""From a function and its arguments to the frames of all stages."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jax
from jax.extend.source_info_util import register_exclusion

from ..protocol.events import Arguments, Equations, Memory, Outputs, Peak, Stage
from ..protocol.request import Request, UsageError
from ..protocol.workspace import (
    COMPILER_LOG,
    DUMP,
    PROFILE,
    compiler_options,
    diverted,
    read_messages,
    read_peak,
    read_stages,
)
from . import equation_numbers, failures, tagging
from .channel import Channel
from .inputs import callables, wrappers
from .inputs.arguments import find_arguments
from .inputs.callables import Traceable
from .inputs.context import enter_context
from .inputs.resolve import Resolved
from .patches import Overriding
from .probes import live, watching
from .program import avals, jaxpr_facts, structure, values
from .program.jaxpr_facts import Table
from .simulated.topology import Topology
from .subject import KnownSubject, meshes_in_context, meshes_in_jaxpr, meshes_in_shardings

OLDEST_JAX = (0, 7, 1)


def record(
    request: Request,
    found: Resolved,
    channel: Channel,
    workspace: str,
    topology: Topology | None = None,
    overrides: Overriding | None = None,
    given: callables.Arguments | None = None,
) -> None:
    """Trace, lower, compile and run; each stage is sent as soon as it is there.

    With a topology it is lowered and compiled for that, and not run. Arguments that are `given` need not be found.
    """
    for path in (failures.HERE, "<string>"):  # our own frames: they must not be in source locations
        register_exclusion(path)
    subject = KnownSubject(request, found, channel, topology)
    for problem in filter(None, (probe() for probe in (_old_jax, wrappers.probe, avals.probe, structure.probe))):
        channel.tell("warning", problem)

    channel.enter("arguments")
    with ExitStack() as context:
        if given is None:
            enter_context(request, found, context, channel)
            subject.add_meshes(meshes_in_context())
        args, kwargs = find_arguments(request, found) if given is None else given
        context.enter_context(_warnings_as_messages(channel))
        channel.enter("trace")
        started = time.perf_counter()
        call = callables.trace(found.function, args, kwargs)
        traced = call.traced
        if overrides is not None:
            overrides.complain()
        table = jaxpr_facts.Table(traced.jaxpr)
        channel.send(Stage("jaxpr", _since(started), table.encode()))
        described = values.describe_arguments(call), values.describe_results(call)
        channel.send(Arguments(described[0]))
        channel.send(Outputs(described[1]))
        arguments = jax.tree.leaves(call.dynamic())
        subject.add_meshes([*meshes_in_jaxpr(traced.jaxpr), *meshes_in_shardings(arguments)])
        if call.implicit_jit is not None:
            channel.tell("info", f"{found.name} has no jit of its own; shown as {call.implicit_jit} of it")
            callables.refuse_dead(found.name, traced.jaxpr)

        if request.only_trace:
            return
        channel.enter("lower")
        with _compiler_messages(channel, workspace):
            started = time.perf_counter()
            with equation_numbers.numbered(table.kept) as unnumbered:
                lowered = _lower(traced, topology, channel)
            names = tagging.names_of(lowered, *([value.path for value in side] for side in described))
            equations = equation_numbers.EquationNumbers()
            untaggable = tagging.tag(lowered.compiler_ir("stablehlo"), names, equations)
            stablehlo = lowered.as_text(debug_info=True).encode()
        channel.send(Stage("stablehlo", _since(started), stablehlo))

        channel.send(Equations(equations.encode()))
        for problem in filter(None, (unnumbered, untaggable)):
            channel.tell("info", problem)

        channel.enter("compile")
        compiled, devices = _compile(lowered, channel, workspace, topology)
        subject.set_devices(devices)
        if topology is None:
            channel.send(Arguments(values.with_actual(described[0], values.compiled_shardings(compiled, "input"))))
            channel.send(Outputs(values.with_actual(described[1], values.compiled_shardings(compiled, "output"))))
        memory = _memory(compiled)
        if memory is not None:
            channel.send(memory)
        if topology is not None:
            _tell_what_differs(topology, traced.jaxpr, channel)
        elif request.live:
            channel.enter("run")
            if (needed := _bytes_needed(memory, len(devices))) and (obstacle := live.obstacle(needed)):
                channel.tell("info", f"no live run: {obstacle}")
            else:
                _run(call, compiled, request, channel, workspace, table)


def _compile(lowered: Any, channel: Channel, workspace: str, topology: Topology | None) -> tuple[Any, list[Any]]:
    """Compile, and send the stages around the partitioner even where that fails after them.

    Gives what was compiled, and its devices in the order of its partitions.
    """
    folder = str(Path(workspace, DUMP))
    with _compiler_messages(channel, workspace):
        started = time.perf_counter()
        try:
            compiled, devices = _compile_for(topology, lowered, folder)
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


def _lower(traced: Any, topology: Topology | None, channel: Channel) -> Any:
    if topology is None:
        return traced.lower()
    from .simulated.cross_compile import leave_out

    for place, what in leave_out(traced.jaxpr, topology.lowering):
        channel.tell("warning", what, place)
    return traced.lower(lowering_platforms=(topology.lowering,))


def _compile_for(topology: Topology | None, lowered: Any, folder: str) -> tuple[Any, list[Any]]:
    if topology is None:
        compiled = lowered.compile(compiler_options=compiler_options(folder))
        return compiled, list(compiled.runtime_executable().local_devices())
    # Not above: with JAX's own devices, what this file is about need not be there.
    from .simulated import cross_compile

    if problem := cross_compile.probe():
        raise UsageError(problem, "the targets cpu and local are compiled for without it")
    found = cross_compile.compile_for(topology, lowered, folder)
    return found, found.devices


def _tell_what_differs(topology: Topology, jaxpr: Any, channel: Channel) -> None:
    """Say what was decided by the platform, and how."""
    from .simulated.cross_compile import platform_branches

    for place in topology.asked:
        channel.tell("info", f"jax.default_backend() was answered with {topology.platform!r}", place)
    for where, branch in platform_branches(jaxpr, topology.lowering):
        channel.tell("info", f"lax.platform_dependent: {branch}", where)


def _run(call: Traceable, compiled: Any, request: Request, channel: Channel, workspace: str, table: Table) -> None:
    try:
        inputs = live.inputs_of(call, compiled, request.seed)
        outputs, execution = live.run(compiled, inputs, request.fingerprints)
    except (TypeError, ValueError, AssertionError, NotImplementedError) as error:
        if failures.user_line(error):
            raise
        # JAX does not take these arguments for this program: nothing that the user did, and nothing else is lost.
        channel.tell("warning", f"no live run: {error}")
        return
    channel.send(execution)
    channel.enter("probe")
    try:
        # What the compiler says of the program with probes, it has said of the one without.
        with diverted(log := Path(workspace, COMPILER_LOG)):
            program = watching.Program(call.traced, compiled, table, inputs, outputs, min(execution.seconds))
            watching.watch(request, program, channel, Path(workspace, PROFILE))
        log.unlink(missing_ok=True)
    except Exception as error:  # whatever it is, it is not the user's: all that was asked for is there already
        channel.tell("warning", f"no values inside the program: {type(error).__name__}: {error}")


def _memory(compiled: Any) -> Memory | None:
    """Sizes; a figure that this backend or this JAX does not give is None."""
    try:
        stats = compiled.memory_analysis()
    except (NotImplementedError, AttributeError, jax.errors.JaxRuntimeError):
        return None
    names = {
        "arguments": "argument_size_in_bytes",
        "outputs": "output_size_in_bytes",
        "temporaries": "temp_size_in_bytes",
        "aliased": "alias_size_in_bytes",
        "code": "generated_code_size_in_bytes",
        "peak": "peak_memory_in_bytes",
    }
    figures = {key: getattr(stats, name, None) for key, name in names.items()}
    return Memory(**figures) if any(figure is not None for figure in figures.values()) else None


def _bytes_needed(memory: Memory | None, devices: int) -> int | None:
    """What a run takes on all devices together."""
    if memory is None or memory.arguments is None or memory.outputs is None or memory.temporaries is None:
        return None
    return (memory.arguments + memory.outputs + memory.temporaries) * devices


@contextmanager
def _compiler_messages(channel: Channel, workspace: str) -> Iterator[None]:
    """Send what the compiler writes meanwhile to file descriptor 2 as messages."""
    log = Path(workspace, COMPILER_LOG)
    try:
        with diverted(log):
            yield
    finally:
        for message in read_messages(log, channel.phase):
            channel.send(message)
        log.unlink(missing_ok=True)


@contextmanager
def _warnings_as_messages(channel: Channel) -> Iterator[None]:
    """Send warnings as messages instead of printing them."""

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        place = failures.line_being_run() or f"{filename}:{lineno}"
        channel.tell("warning", f"{category.__name__}: {message}", place)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _old_jax() -> str | None:
    if jax.__version_info__ >= OLDEST_JAX:
        return None
    return f"JAX {jax.__version__} is older than {'.'.join(map(str, OLDEST_JAX))}, the oldest that shardscope knows"


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 6)
