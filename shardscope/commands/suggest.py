"""Search for shardings of a function's arguments that send less, or take less memory.

Assignments of PartitionSpecs to all arguments are priced by Shardy; the best are compiled for the target and measured.
What needs more memory than today never stands first.

  shardscope suggest script.py:step
  shardscope suggest script.py:step --target tpu:v5e:2x4 --seconds 120
  shardscope suggest script.py:step --keep params --format json
  shardscope suggest script.py:step --cluster tcp://scheduler:8786
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from shardscope.commands.capturing import add_capture_options, complain, request_of, settings_of, watched
from shardscope.commands.output import add_output_options, exit_code, output_of, write_rendered
from shardscope.configuration import seconds
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.spawn import begin
from shardscope.inspector.render.renderers import renderer
from shardscope.terminal import progress

KEEP = ("params", "mesh")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("function", help="script.py:function, package.module:function, or a sample's name")
    add_capture_options(parser)
    parser.add_argument("--seconds", type=seconds, default=60.0, metavar="S", help="time for the search (default: 60)")
    parser.add_argument(
        "--keep",
        type=_kept,
        default=("mesh",),
        metavar="WHAT",
        help="keep the shardings of params as they are; the mesh",
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="compile on the workers of this Dask scheduler")
    add_output_options(parser, "suggestions", screen=False)


def _kept(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if unknown := [name for name in names or (text,) if name not in KEEP]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} cannot be kept; choose from {', '.join(KEEP)}")
    return names


def run(options: argparse.Namespace) -> ExitCode:
    """Search, and show the rows."""
    request = request_of(options, options.function, settings_of(options.function), live=True)
    capture = watched(begin(request), quiet=options.quiet)
    if capture.failure is not None:
        return complain(options.function, capture, exit_code(capture))
    from shardscope.inspector.experiments.suggest import suggested

    with ExitStack() as stack:
        where: dict[str, Any] = {}
        if options.cluster is not None:
            from shardscope.inspector.experiments.cluster import on_cluster

            capture_it, at_once = stack.enter_context(on_cluster(options.cluster))
            where = {"capture_it": capture_it, "at_once": at_once}
        tell = stack.enter_context(progress("searching", quiet=options.quiet))
        found = suggested(capture, request, options.seconds, options.keep, tell, **where)
    output = output_of(options)
    write_rendered(renderer(output.format, "suggestions")[1], found, output)
    return ExitCode.DONE
