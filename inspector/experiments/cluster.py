"""Captures on the machines of a Dask cluster, which see the script and its environment at the same paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from typing import Any

from ...parsers.errors import ShardscopeError
from ..capture.file import read, write
from ..capture.model import Capture
from ..capture.protocol.request import Request
from ..capture.spawn import last_capture

CONNECT_S = 10
GRACE_S = 30.0
"""Seconds beyond those of a capture, in which it may begin again: a worker that dies is replaced by another one."""


@contextmanager
def on_cluster(address: str) -> Iterator[tuple[Callable[[Request], Capture], int]]:
    """Give what captures on a cluster, by the address of its scheduler, and how many captures it takes at once.

    Each is one task of a worker's thread. Those of a worker that dies are run again by another one.

    Raises:
        ShardscopeError: Dask is not installed, or no scheduler with workers answers at the address.
    """
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError:
        raise ShardscopeError("--cluster needs Dask: pip install 'shardscope[cluster]'") from None
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ShardscopeError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ShardscopeError(f"the Dask scheduler at {address} has no workers")

        def capture(request: Request) -> Capture:
            task = client.submit(_captured, request.encode(), pure=False)
            try:
                data = task.result(timeout=None if request.timeout is None else request.timeout + GRACE_S)
            finally:
                task.cancel()
            return replace(read(address, BytesIO(data)), foreign=False)

        yield capture, threads


def _captured(request: str) -> bytes:
    """A worker's task: a capture as its file has it."""
    made = BytesIO()
    write(last_capture(Request.decode(request)), made)
    return made.getvalue()
