"""Bytes that devices have to receive for an array to be sharded otherwise, as `device_put` does outside of programs.

They follow from the shardings alone: a device keeps what it has of its block, and gets the rest. HOST in the place of
the first sharding means an array on no device.

  shardscope transfer 'f32[4096,1024]' "P('data')" "P(None, 'data')" --mesh data=8
  shardscope transfer 'bf16[8192,8192]' "P('fsdp')" "P('data', 'model')" --mesh fsdp=8 --to-mesh data=2,model=4
"""

from __future__ import annotations

import argparse
import json

from shardscope.commands.capturing import mesh_of
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.protocol.blocks import by_receiver
from shardscope.inspector.ir.array_sharding import ArraySharding
from shardscope.inspector.ir.placement import pairs_of
from shardscope.inspector.ir.sharding_spellings import from_spec
from shardscope.inspector.ir.types import ArrayType, jax_type
from shardscope.inspector.units import format_bytes, plural
from shardscope.parsers.errors import ParseError
from shardscope.parsers.sharding_syntax.jax_arrays import parse_spec
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.terminal import say, write

MAX_PAIRS = 16
"""Pairs of devices that are listed."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("type", help="the type of the array as JAX prints it, f32[4096,1024]")
    parser.add_argument("before", help="the PartitionSpec before, P('data'); HOST for an array on no device")
    parser.add_argument("after", help="the PartitionSpec afterwards")
    parser.add_argument("--mesh", type=mesh_of, required=True, metavar="x=4,y=2", help="the mesh of both")
    parser.add_argument("--to-mesh", type=mesh_of, metavar="x=4,y=2", help="another mesh afterwards")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")


def run(options: argparse.Namespace) -> ExitCode:
    """Print what each device receives, and from which."""
    type = jax_type(options.type)
    try:
        before = None if options.before == "HOST" else _sharding(options.before, options.mesh, type)
        pairs = pairs_of(type, before, _sharding(options.after, options.to_mesh or options.mesh, type))
    except ValueError as error:
        say(f"shardscope transfer: {error}")
        return ExitCode.USAGE
    received = by_receiver(pairs)
    if options.format == "json":
        listed = [{"sender": sender, "receiver": to, "bytes": size} for (sender, to), size in pairs.items()]
        document = {"type": str(type), "received": sum(received.values()), "most": max(received.values(), default=0)}
        write((json.dumps(document | {"pairs": listed}, indent=2) + "\n").encode())
        return ExitCode.DONE
    lines = [f"{type} from {options.before} to {options.after}: {format_bytes(sum(received.values()))} in all"]
    if not received:
        lines.append("nothing moves")
    else:
        most = max(received.values())
        devices = MeshSyntax(options.to_mesh or options.mesh).size
        lines.append(f"{plural(len(received), 'device')} of {devices} receive, at most {format_bytes(most)}")
    for (sender, to), size in list(pairs.items())[:MAX_PAIRS]:
        lines.append(f"  {'host' if sender is None else sender} → {to}  {format_bytes(size)}")
    if len(pairs) > MAX_PAIRS:
        lines.append(f"  and {len(pairs) - MAX_PAIRS} more; --format json has all")
    write("".join(f"{line}\n" for line in lines).encode())
    return ExitCode.DONE


def _sharding(text: str, mesh: tuple[tuple[str, int], ...], type: ArrayType) -> ArraySharding:
    try:
        return from_spec(parse_spec(text), MeshSyntax(mesh), len(type.shape or ()))
    except ParseError as error:
        raise ValueError(f"{text}: {error}") from None
