"""Options of the commands that capture, and the accepted names of functions and files."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shardscope.configuration import Found, configuration_above, devices, seconds, whole
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import PHASES, Capture
from shardscope.inspector.capture.protocol.request import Request, is_file, split_function
from shardscope.inspector.capture.spawn import CaptureHandle, begin
from shardscope.samples.catalogue import samples
from shardscope.terminal import progress, say

MAX_SEED = (1 << 31) - 1


def watched(
    begun: CaptureHandle, *, quiet: bool = False, until: Callable[[Capture], bool] = lambda capture: False
) -> Capture:
    """All that a capture gives, when it is over, or what it has as soon as `until` says so.

    A terminal shows meanwhile what is being done.
    """
    with progress(quiet=quiet) as tell:
        for capture in begun.captures:
            if capture.progress is not None:
                tell(PHASES[capture.progress.phase])
            if until(capture):
                break
    return capture


def located(function: str) -> str:
    """A sample's name as the path of its file, anything else as it is; the user's own module of that name wins."""
    name, _, attribute = function.partition(":")
    if os.path.exists(f"{name}.py") or os.path.isdir(name):
        return function
    for sample in samples():
        if sample.name == name:
            return f"{sample.path}:{attribute or sample.functions[0]}"
    return function


def settings_of(function: str) -> Found:
    """The settings that hold for a function: those above its script, or above the folder that one is in."""
    place, _ = split_function(function)
    return configuration_above(Path(place).parent if is_file(place) else Path())


def add_capture_options(parser: argparse.ArgumentParser, *, one_target: bool = True) -> None:
    """Add the options that change the captured program; unless it is for one target, its script's arguments, too."""
    if one_target:
        parser.add_argument("--target", metavar="TARGET", help="compile for this target (default: cpu)")
    else:
        parser.add_argument("argv", nargs="*", metavar="-- ARGS", help="arguments for the script (its sys.argv)")
        parser.add_argument(
            "--target",
            action="append",
            metavar="TARGET",
            help="compile for this target: cpu (default), cpu:16, local, tpu:v5p:4x4x4, gpu:h100:8x4; repeat it to"
            " compare targets; see `shardscope targets`",
        )
        parser.add_argument(
            "--seed",
            type=whole(0, MAX_SEED),
            default=0,
            metavar="N",
            help="seed of the synthetic values of abstract arguments (default: 0)",
        )
    parser.add_argument(
        "--arg",
        dest="args",
        action="append",
        default=[],
        metavar="TYPE",
        help="type and PartitionSpec of an argument, for example f32[8,16]@x,y; or a pytree of these, as JSON",
    )
    parser.add_argument(
        "--inputs",
        metavar="NAME",
        help="name of the arguments in the script, or of a function that returns them; other.py:NAME for another file",
    )
    parser.add_argument(
        "--mesh", type=mesh_of, default=(), metavar="x=4,y=2", help="run under jax.set_mesh with a mesh of these axes"
    )
    parser.add_argument(
        "--context", metavar="NAME", help="run under this mesh, or context manager, of the script: see jax.set_mesh"
    )
    parser.add_argument(
        "--devices",
        type=devices,
        metavar="N",
        help="number of fake CPU devices (default: as needed)",
    )
    parser.add_argument("--python", metavar="PATH", help="Python interpreter that runs the script")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="stop the capture after S seconds")


def add_validation_option(parser: argparse.ArgumentParser) -> None:
    """Add `--validate`."""
    parser.add_argument(
        "--validate",
        action="store_true",
        help="evaluate the compiled program on all devices, without them, and compare it with its source",
    )


def beginning(options: argparse.Namespace) -> Callable[[Request], CaptureHandle]:
    """Return how captures begin: with `--validate` as those that are validated at their end."""
    if not options.validate:
        return begin
    from shardscope.inspector.capture.validation import SECONDS, begin_validated

    return lambda request: begin_validated(request, SECONDS, kept_in(request))


def kept_in(request: Request) -> Path:
    """The folder for the files that show that a compiled program is wrong."""
    place, name = split_function(request.function)
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{Path(place).stem} {name} {request.target}").strip("-")
    return Path(f"{words}.validation")


def mesh_of(text: str) -> tuple[tuple[str, int], ...]:
    """A mesh by its axes: `x=4,y=2`."""
    axes = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and size.strip().isdecimal() and int(size) for name, _, size in axes):
        raise argparse.ArgumentTypeError(f"{text!r}: expected the names and sizes of its axes, as in x=4,y=2")
    return tuple((name.strip(), int(size)) for name, _, size in axes)


def targets_of(options: argparse.Namespace, settings: Found) -> list[str]:
    """The targets that are named, each once; else those of the settings, or the CPU."""
    said = options.target or settings.configuration.target or "cpu"
    return list(dict.fromkeys((said,) if isinstance(said, str) else said))


def request_of(
    options: argparse.Namespace,
    function: str,
    settings: Found,
    *,
    target: str | None = None,
    python: str | None = None,
    overrides: Sequence[str] = (),
    live: bool = False,
) -> Request:
    """The capture of one side, if it is a function: options are named as its fields; else the settings hold."""
    said = settings.configuration
    chosen = target or targets_of(options, settings)[0]
    named: dict[str, Any] = {
        name: tuple(given) if isinstance(given, list) else given
        for name, given in vars(options).items()
        if name in Request.__match_args__
    }
    merged: dict[str, Any] = {
        "function": located(function),
        "devices": options.devices or (said.devices if chosen == "cpu" else None),
        "target": chosen,
        "python": python or options.python or settings.python,
        "live": live or bool(named.get("live")),
        "timeout": said.timeout if options.timeout is None else options.timeout,
        "overrides": tuple(overrides),
    }
    return Request(**{"probe": "none", **named, **merged})


def capture_side(
    given: str, request: Request, *, quiet: bool = False, begin: Callable[[Request], CaptureHandle] = begin
) -> Capture:
    """Return the capture in a file or folder, else that of a request."""
    if not is_kept(given):
        return watched(begin(request), quiet=quiet)
    from shardscope.inspector.load import load

    with progress(f"reading {given}", quiet=quiet):
        return load(given)


def is_kept(given: str) -> bool:
    """Return whether a side is a file, a folder, or standard input instead of a function."""
    return given == "-" or (os.path.exists(given) and not given.endswith(".py"))


def complain(side: str, capture: Capture, code: ExitCode) -> ExitCode:
    """Report why one side could not be captured."""
    why = capture.failure
    said = capture.damage if why is None else "\n".join(filter(None, (why.message, why.details.rstrip(), why.hint)))
    say(f"shardscope: {side}: {said}")
    return code
