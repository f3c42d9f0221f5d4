"""The protocol between the worker and the front process; it needs the standard library only."""
