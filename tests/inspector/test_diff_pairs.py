"""What `diff` says of pairs of programs of which is known what differs."""

from __future__ import annotations

import re
from collections import Counter

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.headline import headline
from shardscope.inspector.report.changes import Change

from tests.sweeps import sampled

from .conftest import Edited
from .diff_pairs import PAIRS, KnownPair

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="true of what JAX 0.10 and later compile to")

FOLLOWING = {"bytes_out", "wire_bytes"}

INSTRUCTION = re.compile(
    r" = [^=]*? (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(", re.MULTILINE
)


@pytest.mark.parametrize("pair", sampled(PAIRS, 16, 5), ids=lambda pair: f"{pair.story}: {pair.before}")
def test_what_is_known(pair: KnownPair, edited: Edited) -> None:
    one = edited(pair.before, ())
    other = edited(pair.after or pair.before, pair.edits)
    found = diff(inspect(one), inspect(other))
    assert sorted(map(_told, found.changes)) == sorted(pair.differs), headline(found)
    assert headline(found).startswith("no change in communication") == (not pair.differs)
    assert pair.headline in headline(found)
    named = tuple(side.name for change in found.borders if (side := change.after or change.before) is not None)
    assert set(pair.borders) <= set(named) or not pair.borders, named
    # The texts agree: so many instructions more or less of each kind.
    grown = _counted(other)
    grown.subtract(_counted(one))
    told: Counter[str] = Counter()
    for change in found.changes:
        for sign, these in ((-1, change.befores), (1, change.afters)):
            for one, count in these:
                told[one.work.kind] += sign * count * change.count
    assert {kind: n for kind, n in told.items() if n} == {kind: n for kind, n in grown.items() if n}


def test_each_pair_the_other_way_around(edited: Edited) -> None:
    """What came is what went, and what changed changed back."""
    turned = {"+": "-", "-": "+", "~": "~", "=": "="}
    for pair in PAIRS[::4]:
        sides = [inspect(edited(pair.before, ())), inspect(edited(pair.after or pair.before, pair.edits))]
        back = sorted(f"{turned[(told := _told(change))[0]]}{told[1]}" for change in diff(*sides[::-1]).changes)
        assert back == sorted(f"{told[0]}{told[1]}" for told in map(_told, diff(*sides).changes)), pair.story


def _told(change: Change) -> str:
    side = change.after or change.before
    assert side is not None
    sign = {"added": "+", "removed": "-", "changed": "~", "regrouped": "="}[change.kind]
    what = " ".join(name for name in change.what if name not in FOLLOWING)
    axes = ",".join(map(str, side.work.axes or ()))
    return f"{sign}{change.count} {side.work.kind} {axes}" + (f": {what}" if what else "")


def _counted(captured: Capture) -> Counter[str]:
    stage = captured.stage("hlo")
    assert stage is not None
    return Counter(INSTRUCTION.findall(stage.source.data.decode()))
