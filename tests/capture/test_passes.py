"""Passes of XLA by the files that are written between them: against pipelines in pipelines that are run here."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise

import pytest
from shardscope.inspector.capture import passes
from shardscope.inspector.capture.passes import PassFile, place_of, snapshots


class Compiler:
    """Pipelines as XLA runs them, with a text at the start of each and after each of its passes; notes what changes."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.state = 0
        self.files: list[tuple[str, bytes]] = []
        self.changes: list[tuple[str, str]] = []

    def write(self, pipeline: str, after: str, before: str) -> None:
        name = f"module_0001.jit_f.{len(self.files):04}.{pipeline}.after_{after}.before_{before}.txt"
        self.files.append((name, b"state %d" % self.state))

    def change(self, pipeline: str, name: str) -> None:
        if self.chance.random() < 0.5:
            self.state += 1
            self.changes.append((pipeline, name))

    def run(self, pipeline: str, depth: int) -> None:
        names = [f"{pipeline}-{number}" for number in range(self.chance.randrange(1, 4))]
        self.write(pipeline, "pipeline-start", names[0])
        for name, following in zip(names, [*names[1:], "pipeline-end"], strict=True):
            self.change(pipeline, name)
            if depth and self.chance.random() < 0.4:
                self.run(name, depth - 1)
            self.write(pipeline, name, following)


def read(files: Iterable[tuple[str, bytes]]) -> Iterator[PassFile]:
    return ((name, partial(bytes, data)) for name, data in files)


@pytest.mark.parametrize("seed", range(30))
def test_changes_are_of_the_pass_that_makes_them(seed: int) -> None:
    compiler = Compiler(seed)
    compiler.run("all", 3)
    shuffled = random.Random(seed).sample(compiler.files, len(compiler.files))
    found = snapshots(read(shuffled), every=True)
    assert [(each.pipeline, each.name) for each in found.kept if each.changes] == compiler.changes
    assert found.left_out == 0
    states = [each.stage.source.data for each in found.kept]
    # Before each change stands the text that it begins with.
    for before, after in pairwise(states):
        assert int(after[6:]) - int(before[6:]) in (0, 1)


def test_there_is_room_for_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [(f"m.{number:04}.p.after_{number}.txt", b"%08d" % number) for number in range(9)]
    for most in range(0, 80, 4):
        monkeypatch.setattr(passes, "MAX_BYTES", most)
        found = snapshots(read(files), every=True)
        assert len(found.kept) == min(most // 8, 9)
        assert found.left_out == 8 - sum(each.changes for each in found.kept)
        assert [f"{found.left_out} pass" in each.text for each in found.messages] == [True] * (found.left_out > 0)


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("module_0001.jit_f.cpu.0003.HLO passes.after_dce.before_cse.txt", ("HLO passes", "dce", "cse")),
        ("folder/module_0001.0003.spmd.after_pipeline-start.before_cse.txt.gz", ("spmd", "pipeline-start", "cse")),
        ("0003.spmd.after_dce.hlo.pb", ("spmd", "dce", "")),
        ("module_0001.jit_f.cpu_after_optimizations.txt", None),
        ("m.003.spmd.after_dce.txt", None),
    ],
)
def test_names_of_files(file: str, place: tuple[str, str, str] | None) -> None:
    assert place_of(file) == place
