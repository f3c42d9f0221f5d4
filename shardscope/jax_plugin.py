"""The plugin that JAX loads: records the process if `SHARDSCOPE_RECORD` names a folder."""

from __future__ import annotations

import os
import sys

LAUNCHED = "_shardscope.capture.worker.tracing.start"
"""Records a process that `shardscope trace` has started."""


def initialize() -> None:
    """Start to record, before JAX compiles anything; called by JAX when it starts its backends."""
    if os.environ.get("SHARDSCOPE_RECORD") and LAUNCHED not in sys.modules:
        from shardscope.inspector.capture.here import record_as_told

        record_as_told()
