"""A trace: every program that JAX compiled while a command ran, in all of its processes. Times are in seconds."""

from __future__ import annotations
