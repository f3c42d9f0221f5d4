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
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..protocol.events import Devices, End, Script
from ..protocol.request import Request, UsageError, read_overrides
from ..protocol.workspace import FAULT_LOG
from . import backward_lines, failures, patches
from .channel import Channel, Pipe, die_with_parent
from .inputs.resolve import find_script, prepare_path, resolve
from .patches import Overriding
from .simulated.platform import KeptPlatform
from .simulated.topology import Topology

WANTED = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d+-(plugin|pjrt)|nvidia-(cuda-nvcc|nvvm)(-cu\d+)?")
"""Packages that decide what an interpreter can compile for."""


def main(workspace: str, descriptor: str, request_text: str, chosen_devices: str, topology_text: str = "") -> None:
    """Capture what `request_text` asks for and write frames to `descriptor`.

    `chosen_devices` is the number of fake devices that shardscope chose, and may choose anew; empty where the user did.
    `topology_text` holds, in JSON, the fields of the Topology to compile for; empty for the devices that are there.
    """
    die_with_parent()
    faulthandler.enable(open(os.path.join(workspace, FAULT_LOG), "wb", buffering=0))  # noqa: SIM115 (open to the end)
    channel = Channel(Pipe(int(descriptor)).write)
    request = Request.decode(request_text)
    topology = Topology(**json.loads(topology_text)) if topology_text else None
    try:
        _capture(request, channel, workspace, topology)
        channel.send(End(channel.now()))
    except BaseException as error:
        _send_failure(error, channel, request.target, int(chosen_devices or 0))
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the script may have closed it, or put anything in its place
            stream.flush()
    os._exit(0)  # Threads of the script may never end, and its exit handlers are not part of what is captured.


def _capture(request: Request, channel: Channel, workspace: str, topology: Topology | None) -> None:
    channel.enter("import")
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(line_buffering=True)
    patches.interpose(request.replaced)
    script = find_script(request.function)
    if script is not None:
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
    if topology is not None:
        topology.watch_imports()
    if request.target != "local":
        KeptPlatform(channel).watch_imports()
    found = resolve(request.function)
    file = getattr(found.module, "__file__", None) or ""
    if script is None and file.endswith(".py"):
        channel.send(Script(file, patches.text_of(file)))

    # Here, and not above, because the script is to be the first that imports jax: it may set jax's environment.
    from .recording import record

    record(request, found, channel, workspace, topology, overrides)


def _send_failure(error: BaseException, channel: Channel, target: str, chosen_devices: int) -> None:
    """Tell why it ends here; an error about the number of devices says how many were wanted."""
    failure = failures.describe(error, channel.phase)
    message, line = failures.text_of(error), failures.user_line(error)
    count = _device_count() if failures.is_about_devices(message, line) else 0
    wanted = failures.wanted(message, line, count) if count and not isinstance(error, UsageError) else None
    if wanted is not None and count == chosen_devices:
        channel.send(Devices(wanted))
    elif wanted is not None and wanted > count:
        other = f"a target of {wanted} devices, or a smaller mesh"
        failure = replace(
            failure,
            kind="usage",
            message=f"{wanted} devices are needed, but there are {count}: {failure.message}",
            hint=f"--devices {wanted}" if target == "cpu" else other,
        )
    elif failures.is_about_divisibility(message) and _device_count() == chosen_devices:
        hint = f"if the script uses all {chosen_devices} available devices, try fewer with --devices"
        failure = replace(failure, hint=hint)
    elif failures.needs_mesh(message):
        failure = replace(
            failure,
            hint="--context NAME sets a mesh of the script, --mesh x=4,y=2 a mesh with these axes; "
            "or run the whole script: shardscope trace",
        )
    elif "RESOURCE_EXHAUSTED" in message and channel.phase == "compile":
        failure = replace(
            failure, hint="it does not fit on one device: shard it over more devices, or rematerialize more"
        )
    elif "Unknown backend" in message:
        failure = replace(
            failure, hint="scripts run on fake CPU devices; --target local leaves the choice of devices to JAX"
        )
    channel.send(replace(failure, since=channel.now()))


def _device_count() -> int:
    jax: Any = sys.modules.get("jax")
    try:
        return int(jax.device_count())
    except Exception:  # jax is not there, or its backend would not start: that is the error to tell of
        return 0


def list_packages() -> None:
    """Print the versions of Python and of the packages that decide what it can compile for, as JSON."""
    found = {"python": platform.python_version()}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"] or "")).lower()
        if WANTED.fullmatch(name):
            found[name] = distribution.version
    print(json.dumps(found))
