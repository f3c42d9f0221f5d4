"""What the worker and the process in front know of each other; the standard library is all it needs."""
