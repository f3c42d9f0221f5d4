"""How a process joins those that stand for a cluster, with modules in the place of JAX's, in this process."""

from __future__ import annotations

import os
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from shardscope.inspector.capture.protocol import OPTIONS_VARIABLE
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.worker.tracing import joining
from shardscope.inspector.capture.worker.tracing.costs import sent_bytes

OPTIONS = TraceOptions(coordinator="localhost:1234", processes=4, rank=2)


class Cluster:
    """The modules that are changed, what they are called with, and what is said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.joined: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.complaints: list[str] = []
        joined = self.joined

        class State:
            def initialize(
                self,
                coordinator_address: str | None = None,
                num_processes: int | None = None,
                process_id: int | None = None,
                cluster_detection_method: str | None = None,
            ) -> None:
                joined.append({name: value for name, value in locals().items() if name not in ("self", "joined")})

        self.distributed: Any = ModuleType("distributed")
        self.distributed.State = State
        self.distributed.global_state = State()
        self.bridge: Any = ModuleType("xla_bridge")
        self.bridge.backends = lambda: "backends"
        self.config = SimpleNamespace(update=lambda name, value: setattr(self.config, name, value))
        monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(config=self.config))  # type: ignore[arg-type]
        monkeypatch.setitem(sys.modules, "jax._src.distributed", self.distributed)
        monkeypatch.setenv(OPTIONS_VARIABLE, OPTIONS.encode())
        self.joining = joining._Joining(OPTIONS, self.complaints.append, self.said.append)
        self.joining.change_distributed(self.distributed)
        self.joining.change_backends(self.bridge)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


HERE = {
    "coordinator_address": "localhost:1234",
    "num_processes": 4,
    "process_id": 2,
    "cluster_detection_method": "deactivate",
}


@pytest.mark.parametrize(
    ("given", "said"),
    [({}, []), ({"num_processes": 4, "process_id": 2}, []), ({"num_processes": 16}, ["num_processes=16"]),
     ({"num_processes": 16, "process_id": 7}, ["num_processes=16", "process_id=7"])],
)  # fmt: skip
def test_whatever_a_script_gives_it_joins_once(cluster: Cluster, given: dict[str, int], said: list[str]) -> None:
    cluster.distributed.global_state.initialize(**given)
    assert cluster.joined == [HERE]
    assert [text.partition("(")[2].partition(")")[0] for text in cluster.said] == said
    assert cluster.bridge.backends() == "backends"
    assert len(cluster.joined) == 1
    with pytest.raises(RuntimeError, match="only be called once"):
        cluster.distributed.global_state.initialize()
    assert not cluster.complaints


def test_the_first_backend_joins(cluster: Cluster) -> None:
    assert [cluster.bridge.backends() for _ in range(2)] == ["backends"] * 2
    assert cluster.joined == [HERE]
    assert getattr(cluster.config, joining.COLLECTIVES) == "gloo"
    alone = TraceOptions.decode(os.environ[OPTIONS_VARIABLE])
    assert (alone.coordinator, alone.processes, alone.rank) == ("", 1, 0)


def test_a_child_of_the_process_does_not_join(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    assert cluster.bridge.backends() == "backends"
    assert cluster.joined == []


def test_collectives_that_a_script_chose_stay(cluster: Cluster) -> None:
    setattr(cluster.config, joining.COLLECTIVES, "mpi")
    cluster.bridge.backends()
    assert getattr(cluster.config, joining.COLLECTIVES) == "mpi"


def test_what_is_gone_is_complained_of(cluster: Cluster) -> None:
    cluster.joining.change_distributed(ModuleType("distributed"))
    cluster.joining.change_backends(ModuleType("xla_bridge"))
    assert [text.partition(":")[0] for text in cluster.complaints] == [
        "has no distributed.State.initialize",
        "has no xla_bridge.backends",
    ]


def test_a_clock_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 100.0)
    monkeypatch.setattr(time, "time_ns", lambda: 100)
    joining.set_clock_ahead(2.5)
    assert (time.time(), time.time_ns()) == (102.5, 2_500_000_100)


LOOP = """\
HloModule m, num_partitions=4

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %a = f32[8]{0} all-reduce(%p), replica_groups={}, to_apply=%add
  %b = (bf16[4]{0}, bf16[8]{0}) all-gather-start(%a), replica_groups={{0,1},{2,3}}, dimensions={0}
  %c = bf16[8]{0} all-gather-done(%b)
}

%other (p: f32[8]) -> f32[8] {
  %d = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1}}
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %w = (s32[], f32[8]) while(%p), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %x = f32[8]{0} call(%p), to_apply=%other
  %y = f32[8]{0} conditional(%p, %p, %p), branch_computations={%other, %body}
  %v = f32[2]{0} reduce-scatter(%x), replica_groups=mesh['a'=2,'b'=2]{'a','b'}, dimensions={0}, to_apply=%add
  ROOT %z = pred[16]{0} all-to-all(%x), replica_groups=[2,2]<=[4], dimensions={0}
}
"""


def test_bytes_that_collectives_send_as_often_as_loops_run() -> None:
    body, other = 2 * 8 * 4 * 3 // 4 + 8 * 2 // 2, 8 * 4
    alone = 4 * 2 * 4 * 3 // 4 + 16 // 2
    assert sent_bytes(LOOP) == 5 * body + other + (other + body) + alone
    assert sent_bytes(LOOP.replace('"known_trip_count"', '"unknown"')) == body + other + (other + body) + alone
    assert sent_bytes("") == 0
