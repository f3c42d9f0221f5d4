"""The capturing process, from the request to the last frame."""

from __future__ import annotations

import faulthandler
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..protocol.events import Devices, End, Imported, Script, Stage
from ..protocol.request import Request, UsageError, read_overrides, split_function
from ..protocol.workspace import DUMP, FAULT_LOG, SOURCE, WAITING, diverted, find_propagation
from . import backward_lines, failures, kept_programs, patches
from .channel import Channel, Pipe, die_with_parent, leave
from .inputs.costliest import Costliest
from .inputs.first_call import capture_call
from .inputs.resolve import Resolved, find_script, prepare_path, resolve
from .inputs.running import Runnable, has_inputs, runnable
from .needed_devices import fewer, needed
from .patches import Overriding
from .script_objects import is_a
from .simulated.topology import KeptPlatform, Topology

if TYPE_CHECKING:
    from .inputs.callables import Arguments

WANTED = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d+-(plugin|pjrt)|nvidia-(cuda-nvcc|nvvm)(-cu\d+)?")
"""Packages that decide what an interpreter can compile for."""


def main(workspace: str, descriptor: str, request_text: str) -> None:
    """Capture what `request_text` asks for and write frames to `descriptor`."""
    die_with_parent()
    faulthandler.enable(open(os.path.join(workspace, FAULT_LOG), "wb", buffering=0))  # noqa: SIM115 (open to the end)
    channel = Channel(Pipe(int(descriptor)).write)
    request = Request.decode(request_text)
    topology = Topology(**json.loads(request.topology)) if request.topology else None
    _report(lambda: _capture(request, channel, workspace, topology), request, channel, workspace)


def _report(capture: Callable[[], object], request: Request, channel: Channel, workspace: str) -> NoReturn:
    try:
        capture()
        channel.send(Imported(failures.files_of_user()))
        channel.send(End(channel.now()))
    except BaseException as error:
        channel.send(Imported(failures.files_of_user(error)))
        _send_failure(error, channel, request)
    else:
        _propagate(workspace, channel)
    leave()


def _propagate(workspace: str, channel: Channel) -> None:
    """Send the origins of shardings in a program that was compiled; else another process is to find them."""
    source, files = Path(workspace, SOURCE), find_propagation(os.path.join(workspace, DUMP))
    if not source.exists() or files is None:
        return
    with suppress(Exception), diverted(Path(workspace, "propagation.log")):
        from .provenance import propagated

        started = time.perf_counter()
        text = propagated(source, "origins steps", files)
        channel.send(Stage("sdy", round(time.perf_counter() - started, 6), text))


def _capture(request: Request, channel: Channel, workspace: str, topology: Topology | None) -> None:
    channel.enter("import")
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(line_buffering=True)
    patches.interpose(request.replaced)
    script = find_script(request.function)
    if script is not None and script.suffix != ".ipynb":
        channel.send(Script(str(script), patches.text_of(script)))
    sys.argv = [str(script or request.function), *request.argv]
    prepare_path(request.function)
    if importlib.util.find_spec("jax") is None:
        raise UsageError(
            f"{sys.executable} (Python {platform.python_version()}) has no jax",
            "install it there (pip install jax), or name another interpreter with --python",
        )
    overrides = Overriding(read_overrides(request.overrides))
    overrides.watch_imports()
    backward_lines.watch_imports()
    if request.compiled:
        kept_programs.watch_imports(request.compiled)
    patches.repeat_random_numbers()
    patches.pause_collector()
    if topology is not None:
        topology.watch_imports()
    if request.target != "local":
        KeptPlatform(channel).watch_imports()

    def capture(found: Resolved, given: Arguments | None = None, *, waits: bool = False) -> None:
        # Here, and not above, because the script is to be the first that imports jax: it may set jax's environment.
        from .recording import record

        place, _ = split_function(request.function)
        named = request if given is None else replace(request, function=f"{place}:{found.name}")
        if waits:
            named = replace(named, live=False, case=os.path.join(workspace, WAITING))
        record(named, found, channel, workspace, topology, overrides, given)

    program = _program_to_run(request, script)
    if program is not None:
        channel.send(Script(program.file, program.text))
        sys.argv[0] = program.file
        if request.target != "local":
            from .tracing.joining import stay_alone

            stay_alone(channel.tell)

        def finish(capturing: Callable[[], object]) -> NoReturn:
            _report(capturing, request, channel, workspace)

        folder = os.path.join(workspace, "programs")
        os.mkdir(folder)
        costliest = Costliest(program, request, channel, capture, finish, folder)
        if split_function(request.function)[1]:
            capture_call(costliest)
        else:
            costliest.of_script()
        return
    found = resolve(request.function)
    file = getattr(found.module, "__file__", None) or ""
    if script is None and file.endswith(".py"):
        channel.send(Script(file, patches.text_of(file)))
    capture(found)


def _program_to_run(request: Request, script: Path | None) -> Runnable | None:
    """The script to run up to its own call of the function; None where the arguments are known without."""
    place, name = split_function(request.function)
    if request.args or request.inputs is not None:
        return None
    try:
        program = runnable(script, place)
    except UsageError:
        if script is not None or not name:
            raise
        return None  # a module without source can be imported
    return None if name and has_inputs(program.text, name) else program


def _send_failure(error: BaseException, channel: Channel, request: Request) -> None:
    """Tell why it ends here; an error about the number of devices says how many were wanted."""
    failure = failures.describe(error, channel.phase, is_own=True)
    wanted = None if is_a(error, UsageError) else needed(error)
    count = 0 if wanted is None else failures.device_count()
    if wanted is not None and count == request.chosen:
        channel.send(Devices(wanted))
    elif wanted is None and request.chosen and (number := fewer(error, request.chosen)) is not None:
        channel.send(Devices(number, is_tried=True))
    elif wanted is not None and wanted > count:
        hint = f"--devices {wanted}" if request.target == "cpu" else f"a target of {wanted} devices, or a smaller mesh"
        text = f"{wanted} devices are needed, but there are {count}: {failure.message}"
        failure = replace(failure, kind="usage", message=text, hint=hint)
    channel.send(replace(failure, since=channel.now()))


def list_packages() -> None:
    """Print the versions of Python and of the packages that decide what it can compile for, as JSON."""
    found = {"python": platform.python_version()}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"] or "")).lower()
        if WANTED.fullmatch(name):
            found[name] = distribution.version
    print(json.dumps(found))
