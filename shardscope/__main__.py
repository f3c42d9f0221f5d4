"""`python -m shardscope`, and the `shardscope` command."""

import sys

from shardscope.cli import command

if __name__ == "__main__":
    sys.exit(command())
