"""Searching on a Dask cluster: a scheduler, and two workers of which one is killed while it compiles."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import last_capture
from shardscope.inspector.experiments.cluster import on_cluster
from shardscope.inspector.experiments.suggest import suggested
from shardscope.inspector.report.suggestions import Suggestions
from shardscope.parsers.errors import ShardscopeError

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'shardscope[cluster]'")

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

def like(*spec):
    return jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

step = jax.jit(lambda w, x: jnp.tanh(x @ w).sum())
inputs = like("x"), like(None, "x")
"""


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    (tmp_path / "script.py").write_text(SCRIPT)
    return Request(f"{tmp_path / 'script.py'}:step")


@pytest.fixture
def cluster() -> Iterator[object]:
    with distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


def rows(found: Suggestions) -> set[tuple[object, ...]]:
    return {(each.requests, each.experiment.after.bytes, each.experiment.after.collectives) for each in found.rows}


def test_a_killed_worker_loses_nothing(request_: Request, cluster: object) -> None:
    """The rows are those of a search on this machine."""
    capture = last_capture(request_)
    here = suggested(capture, request_, 120.0)
    address = cluster.scheduler_address  # type: ignore[attr-defined]
    with distributed.Client(address, set_as_default=False) as client:
        first = next(iter(client.run(os.getpid).values()))
    killing, one_at_a_time = threading.Timer(0.5, os.kill, (first, signal.SIGKILL)), threading.Lock()
    with on_cluster(address) as (capture_it, at_once):
        assert at_once == 2

        def capture_and_kill(request: Request) -> Capture:
            with one_at_a_time:
                if not killing.ident:
                    killing.start()
            return capture_it(request)

        there = suggested(capture, request_, 120.0, capture_it=capture_and_kill, at_once=at_once)
    killing.join()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert rows(there) == rows(here)
    assert len(there.rows) > 2


def test_no_scheduler() -> None:
    with (
        pytest.raises(ShardscopeError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        on_cluster("tcp://127.0.0.1:9"),
    ):
        pass
