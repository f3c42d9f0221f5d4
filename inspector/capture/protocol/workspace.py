"""Names of the files that a capture leaves in its private folder while it runs.

The process in front made the folder, reads there what a process that died can no longer send, and removes it.
"""

COMPILER_LOG = "compiler.log"
"""What was written to file descriptor 2 while the compiler ran."""

FAULT_LOG = "fault.log"
"""The Python stack of a crash, written by faulthandler."""

DUMP = "dump"
"""The folder to which XLA writes its stages."""

PROFILE = "profile"
"""The folder that JAX's profiler writes to."""
