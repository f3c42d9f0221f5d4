"""List the targets available here, and what to install for others.

A target is given to `run --target`, several times to compare:

  cpu          cpu:16                 fake CPU devices; as many as the script needs, or 16
  local                               the devices that JAX finds
  tpu:v5p:4x4x4                       a slice of 4 x 4 x 4 chips, one device per chip
  tpu:v4:2x2x1:cores                  one device per core instead, where the chip has that choice
  tpu:v5p:4x4x4*2                     two such slices
  gpu:h100:8   gpu:h100:8x4           one node of 8 GPUs; four of them

No device has to be attached.
"""

from __future__ import annotations

import argparse

from shardscope.exit_code import ExitCode
from shardscope.terminal import show


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--python", metavar="PATH", help="check this interpreter instead")
    parser.add_argument("--chips", action="store_true", help="print every figure of every chip, with its source")


def run(options: argparse.Namespace) -> ExitCode:
    """List, or print the figures."""
    from shardscope.inspector.capture.environment import interpreter_with_jax, packages_of
    from shardscope.inspector.render.explained import chip_lines
    from shardscope.inspector.targets.available import availability

    python = interpreter_with_jax(options.python)
    found = availability(packages_of(python), python)
    if options.chips:
        show("".join(f"{line}\n" for line in chip_lines()))
        return ExitCode.DONE
    lines = []
    for each in found:
        lines.append(
            f"{each.kind:<10} " + (f"no, without {each.missing}" if each.missing else f"yes, with {each.with_what}")
        )
        if each.command:
            lines.append(f"{'':<10} install: {each.command}")
        if each.chips:
            lines.append(f"{'':<10} chips: {', '.join(chip.name for chip in each.chips)}")
        lines.append(f"{'':<10} for instance: --target {each.example}")
    show("".join(f"{line}\n" for line in lines))
    return ExitCode.DONE
