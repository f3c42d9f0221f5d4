"""The protocol between the worker and the front process; it needs the standard library only."""

FOLDER_VARIABLE = "SHARDSCOPE_RECORD"
"""The environment variable that names the folder of a trace, and has a process record into it."""

OPTIONS_VARIABLE = "SHARDSCOPE_RECORD_OPTIONS"
"""The environment variable that holds the encoded options."""
