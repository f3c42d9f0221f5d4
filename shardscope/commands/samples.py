"""List the programs that come with shardscope, or print one.

Any of them can be inspected: `shardscope run NAME`, or `shardscope run NAME:FUNCTION`.
"""

from __future__ import annotations

import argparse
from itertools import groupby

from shardscope.exit_code import ExitCode
from shardscope.parsers.errors import ShardscopeError
from shardscope.samples.catalogue import samples


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", nargs="?", help="print this program")


def run(options: argparse.Namespace) -> ExitCode:
    """List, or print."""
    if options.name is not None:
        found = [sample for sample in samples() if sample.name == options.name]
        if not found:
            raise ShardscopeError(f"there is no sample {options.name!r}; `shardscope samples` lists them")
        print(found[0].path.read_text(), end="")
        return ExitCode.DONE
    width = max(len(sample.name) for sample in samples())
    for group, members in groupby(samples(), key=lambda sample: sample.group):
        print(f"{group}")
        for sample in members:
            print(f"  {sample.name:<{width}}  {sample.summary}")
            if len(sample.functions) > 1:
                print(f"  {'':<{width}}  :{' :'.join(sample.functions)}")
        print()
    return ExitCode.DONE
