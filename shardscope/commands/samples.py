"""List the programs that come with shardscope, or print one.

Any of them can be inspected: `shardscope NAME`, or `shardscope NAME:FUNCTION`.
"""

from __future__ import annotations

import argparse
from itertools import groupby

from shardscope.exit_code import ExitCode
from shardscope.parsers.errors import ShardscopeError
from shardscope.samples.catalogue import samples
from shardscope.terminal import show


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", nargs="?", help="print this program")


def run(options: argparse.Namespace) -> ExitCode:
    """List, or print."""
    if options.name is not None:
        found = [sample for sample in samples() if sample.name == options.name]
        if not found:
            raise ShardscopeError(f"unknown sample {options.name!r}; `shardscope samples` lists them")
        show(found[0].path.read_text())
        return ExitCode.DONE
    width = max(len(sample.name) for sample in samples())
    lines = []
    for group, members in groupby(samples(), key=lambda sample: sample.group):
        lines.append(group)
        for sample in members:
            lines.append(f"  {sample.name:<{width}}  {sample.summary}")
            if len(sample.functions) > 1:
                lines.append(f"  {'':<{width}}  :{' :'.join(sample.functions)}")
        lines.append("")
    show("".join(f"{line}\n" for line in lines))
    return ExitCode.DONE
