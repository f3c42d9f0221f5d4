"""From a function and its arguments to the frames of all stages."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import jax
from jax._src.source_info_util import register_exclusion  # jax.extend adds options of JAX, and calls miss its caches

from ..protocol.events import ClosedOver, Memory
from ..protocol.request import PROBES, Request, UsageError, split_function
from ..protocol.workspace import COMPILER_LOG, WAITING, diverted
from . import equation_numbers, failures, waiting
from .channel import Channel, error_text
from .failures import OLDEST_JAX
from .inputs import callables, wrappers
from .inputs.arguments import find_arguments
from .inputs.callables import Traceable
from .inputs.context import enter_context, with_shardings
from .inputs.resolve import NoProgramError, Resolved
from .needed_devices import needed
from .patches import Overriding
from .probes import gradients, live, watching
from .program import avals, structure, values
from .program.compiled import TracedProgram
from .program.jaxpr_facts import Table
from .simulated.topology import Topology
from .stages import CompiledProgram, send_compiled, send_traced
from .subject import KnownSubject, meshes_in_context


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
    tell_what_has_moved(channel)

    channel.enter("arguments")
    with ExitStack() as context:
        if given is None or request.mesh or request.context is not None:
            enter_context(request, found, context, channel)
            subject.add_meshes(meshes_in_context())
        args, kwargs = find_arguments(request, found) if given is None else given
        context.enter_context(_warnings_as_messages(channel))
        channel.enter("trace")
        started = time.perf_counter()
        try:
            call = callables.trace(found.function, args, kwargs)
            if request.shardings:
                described, specs = values.describe(call), dict(request.shardings)
                function, (args, kwargs) = with_shardings(found.function, (args, kwargs), call, described, specs)
                call = callables.trace(function, args, kwargs)
        except (Exception, SystemExit) as error:
            if callables.has_jit(found.function) or needed(error) is not None:
                raise
            is_concrete = isinstance(error, callables.CONCRETE)
            if is_concrete or (isinstance(error, TypeError) and re.search(NO_ARRAYS, failures.text_of(error))):
                hint = NOT_ONE_PROGRAM if is_concrete else NOT_A_STEP
                error.add_note(f"{failures.HINT}{hint.format(found.name, split_function(request.function)[0])}")
            raise (error if given is None else NoProgramError(error)) from None
        traced = call.traced
        if call.implicit_jit is not None:
            try:
                callables.refuse_dead(found, split_function(request.function)[0], traced.jaxpr)
                if given is not None and callables.is_complete(given):
                    callables.refuse_several(found, traced.jaxpr)
            except UsageError as error:
                raise (error if given is None else NoProgramError(error)) from None
        if overrides is not None:
            overrides.complain()
        program = _program_of(call)
        table = send_traced(program, started, subject, channel)
        _refuse_unknown(request.probe, table)
        closed_over = callables.sharded_constants(call, found.function)
        if closed_over and call.implicit_jit is None:
            channel.send(ClosedOver(closed_over))
        if call.implicit_jit is not None:
            channel.tell("info", f"{found.name} has no jit of its own; shown as {call.implicit_jit} of it")
            if closed_over:
                held = [f"{each.type} as {each.spec}" for each in closed_over]
                channel.tell("warning", _not_as_called(found.name, held, call.implicit_jit))
        if request.only_trace:
            return
        values.take_flat_arguments(traced)
        equation_numbers.forget_lowerings()
        compiled = send_compiled(program, table, subject, channel, workspace, topology, request)
        if request.case_evaluator:
            from .reduction.reduce import Reduction  # few programs differ

            Reduction(request, workspace, topology).run(
                (args, kwargs), program, lambda given: _program_of(callables.trace(found.function, *given))
            )
        if topology is None and request.live:
            channel.enter("run")
            if obstacle := live.obstacle(_bytes_needed(compiled.memory, len(compiled.devices))):
                channel.tell("info", f"no live run: {obstacle}")
            else:
                waits = partial(_tell_of_waiting, request, program, compiled, channel, workspace)
                _run(call, compiled.executable, request, channel, workspace, table, waits)
        if request.gradients:
            channel.enter("probe")
            channel.send(gradients.check(found.function, args, kwargs, request.seed))


def _program_of(call: Traceable) -> TracedProgram:
    leaves = [*jax.tree.leaves(call.dynamic()), *values.requested_shardings(call)]
    return TracedProgram(call.traced.jaxpr, *values.describe(call), leaves, call.traced.lower)


NOT_ONE_PROGRAM = "{} has no jit of its own; if it runs several programs, see them with: shardscope {}"
NOT_A_STEP = "{} returns no arrays: name the function that computes them, or run the script: shardscope {}"


def _not_as_called(name: str, closed_over: list[str], jit: str) -> str:
    """Say that jit makes constants of arrays that the function's own call has with their shardings."""
    listed = ", ".join(closed_over[:3]) + (f" and {len(closed_over) - 3} more" if len(closed_over) > 3 else "")
    return (
        f"{name} closes over sharded arrays, which are constants without shardings in {jit} of it: {listed}. Called by "
        "the script, it may communicate differently: pass them as arguments, name the jitted function that it calls, "
        "or run the script: shardscope script.py"
    )


def _tell_of_waiting(
    request: Request, program: TracedProgram, compiled: CompiledProgram, channel: Channel, workspace: str, runner: int
) -> NoReturn:
    """Leave what an evaluation needs to find where devices wait, and end the process."""
    from .case import write_case  # few programs wait

    executable = compiled.executable.runtime_executable()
    folder = os.path.join(workspace, WAITING)
    write_case(folder, request, program, compiled.lowered, executable, compiled.devices)
    waiting.tell(channel, runner, "run")


def _run(
    call: Traceable, compiled: Any, request: Request, channel: Channel, workspace: str, table: Table,
    waits: Callable[[int], object],
) -> None:  # fmt: skip
    try:
        inputs = live.inputs_of(call, compiled, request.seed, gentle=request.gentle)
        inputs = live.varied(inputs) if request.is_trial else inputs
        inputs = live.nudged(inputs, call.traced.jaxpr if request.is_trial else None) if request.nudged else inputs
        with waiting.watched(waits):
            outputs, execution = live.run(
                compiled,
                inputs,
                call.results or (),
                closely=request.fingerprints,
                on_devices=request.reference,
                is_timed=not request.is_trial,
            )
    except (TypeError, ValueError, AssertionError, NotImplementedError) as error:
        if failures.user_line(error):
            raise
        # JAX does not take these arguments for this program: nothing that the user did, and nothing else is lost.
        channel.tell("warning", f"no live run: {error}")
        return
    channel.send(execution)
    if request.is_trial:
        return
    channel.enter("probe")
    try:
        # What the compiler says of the program with probes, it has said of the one without.
        with diverted(log := Path(workspace, COMPILER_LOG)):
            program = watching.Program(call.traced, compiled, table, inputs, outputs, min(execution.seconds))
            watching.watch(request, program, channel)
        log.unlink(missing_ok=True)
    except Exception as error:  # whatever it is, it is not the user's: all that was asked for is there already
        channel.tell("warning", f"no values inside the program: {error_text(error)}")


def tell_what_has_moved(channel: Channel) -> None:
    """Say what is not known with this JAX."""
    for problem in filter(None, (probe() for probe in (_old_jax, wrappers.probe, avals.probe, structure.probe))):
        channel.tell("warning", problem)


def _bytes_needed(memory: Memory | None, devices: int) -> int:
    sizes = () if memory is None else (memory.arguments, memory.outputs, memory.temporaries)
    return sum(filter(None, sizes)) * devices


NO_ARRAYS = r"which is not a valid JAX type|unhashable type: '\w*Tracer'"
"""JAX of a function that returns anything else (jax._src.interpreters.partial_eval, JAX 0.7 to 0.12); or Python."""


@contextmanager
def _warnings_as_messages(channel: Channel) -> Iterator[None]:
    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        place = failures.line_being_run() or f"{filename}:{lineno}"
        channel.tell("warning", f"{category.__name__}: {message}", place)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _refuse_unknown(probe: str, table: Table) -> None:
    if probe in PROBES:
        return
    known = {f"{number}.{place}" for number, each in enumerate(table.jaxprs) for place in range(len(each["equations"]))}
    unknown = [name for part in probe.split(",") if (name := part.strip()) not in known]
    if unknown:
        hint = "--format json lists the ids of equations; --probe all takes those inside of shard_maps"
        raise UsageError(f"--probe {probe}: the program has no equation {unknown[0]}", hint)


def _old_jax() -> str | None:
    if jax.__version_info__ >= OLDEST_JAX:
        return None
    return f"JAX {jax.__version__} is older than {'.'.join(map(str, OLDEST_JAX))}, the oldest that shardscope knows"
