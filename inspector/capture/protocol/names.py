"""Environment variables that a process is told by to record."""

FOLDER_VARIABLE = "SHARDSCOPE_RECORD"
"""The environment variable that names the folder of the trace, and starts the recording."""

OPTIONS_VARIABLE = "SHARDSCOPE_RECORD_OPTIONS"
"""The environment variable that holds the encoded options."""
