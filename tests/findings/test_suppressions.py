"""Comments that suppress findings: where they are read, what they cover, and what is told of idle ones."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.findings.suppressions import suppressions_in
from shardscope.inspector.ir.program import SourceFile
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report.policy import EVERYTHING, Policy
from shardscope.parsers.source import Source

from tests.inspector.complete.kept import kept

pytestmark = pytest.mark.once

STRICT = Policy(strict=True)


def read(text: str) -> list[tuple[int, int, tuple[str, ...], str]]:
    return [(s.first, s.last, s.rules, s.reason) for s in suppressions_in(SourceFile("f.py", text.encode()))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1  # shardscope: ignore[SS04] counted twice", [(1, 1, ("SS04",), "counted twice")]),
        ("x = 1  # noqa: E501  # shardscope: ignore[SS04, SS01]: why", [(1, 1, ("SS04", "SS01"), "why")]),
        ("x = 1  # shardscope: ignore[SS04] why  # type: ignore", [(1, 1, ("SS04",), "why")]),
        ("x = f(\n    1,\n)  # shardscope: ignore[SS04]\ny = 2", [(1, 3, ("SS04",), "")]),
        ("x = f(  # shardscope: ignore[SS04]\n    1,\n)", [(1, 3, ("SS04",), "")]),
        ("x = 1\n# shardscope: ignore[SS04] next\n\ny = f(\n  2)\nz = 3", [(2, 5, ("SS04",), "next")]),
        ("def f():  # shardscope: ignore[SS04]\n    return 1", [(1, 1, ("SS04",), "")]),
        ("def f():\n    return 1  # shardscope: ignore[psum-of-invariant]", [(2, 2, ("psum-of-invariant",), "")]),
        ("x = 1  # shardscope: ignore", [(1, 1, (), "")]),
        ("x = '# shardscope: ignore[SS04]'", []),
        ('x = """\n# shardscope: ignore[SS04]\n"""', []),
        ("x = 1  # ignore[SS04]", []),
        ("x = 1  # shardscope: ignore[SS04]\nx = (", [(1, 1, ("SS04",), "")]),
    ],
)
def test_where_comments_hold(text: str, expected: list[tuple[int, int, tuple[str, ...], str]]) -> None:
    assert read(text) == expected


@given(st.lists(st.sampled_from(["# shardscope: ignore[SS04] r", "x = (", ")", "'''", "\n", "\\", "y", " ", "é"])))
def test_any_text_is_read_and_only_comments_count(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = suppressions_in(SourceFile("f.py", text.encode()))
    comments = set()
    try:
        for token in tokenize.tokenize(io.BytesIO(text.encode()).readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
    except (tokenize.TokenError, SyntaxError):
        pass
    assert {each.line for each in found} <= comments
    assert all(each.first <= each.line <= each.last for each in found)


@given(st.binary())
def test_bytes_are_no_danger(data: bytes) -> None:
    suppressions_in(SourceFile("f.py", b"# shardscope: ignore[SS04]\n" + data))


PROGRAM = """\
from functools import partial
import jax, jax.numpy as jnp
from jax import lax, P

mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

@partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)
def fn(w, b):
    once = lax.psum(w.sum(), "x"){first}
    real = lax.psum(b.sum(), "x"){second}
    return once + real

def other(w):
    return w{third}

fn_inputs = (jnp.ones(4), jnp.ones(8))
"""


def captured(folder: Path, **comments: str) -> Capture:
    script = folder / "script.py"
    script.write_text(PROGRAM.format_map({"first": "", "second": "", "third": ""} | comments))
    last = last_capture(Request(f"{script}:fn", live=False))
    assert last.complete, last.failure
    return last


def test_a_finding_that_is_known(tmp_path: Path) -> None:
    assert [found.rule for found in inspect(captured(tmp_path)).findings] == ["SS04"]
    report = inspect(captured(tmp_path, first="  # shardscope: ignore[SS04] meant"), STRICT)
    assert report.findings == ()
    (known,) = report.suppressed
    assert (known.finding.rule, known.by.reason, known.by.line) == ("SS04", "meant", 9)


def test_a_comment_that_suppresses_nothing(tmp_path: Path) -> None:
    known = "  # shardscope: ignore[SS04] "
    idle = captured(tmp_path, first=known, second=known, third=known)
    assert inspect(idle, EVERYTHING).findings == ()
    (told,) = inspect(idle, STRICT).findings
    assert told.place.source.frame is not None
    # Line 14 is of a function that is not captured: nothing is known of it.
    assert (told.rule, told.place.source.frame.line, told.severity) == ("SS00", 10, "warning")
    assert inspect(idle, Policy(strict=True, without=frozenset(("SS04",)))).findings == ()


def test_findings_of_no_line_are_of_the_script() -> None:
    """A text without metadata, of a capture that names its script and of one that names none."""
    whole = kept("combined")
    assert whole.subject is not None
    assert whole.subject.script is not None
    text = re.sub(rb", metadata=\{[^}]*\}", b"", next(each.source.data for each in whole.stages if each.name == "hlo"))
    bare = Capture(stages=(Stage("hlo", "hlo", Source("hlo", text)),), complete=True, foreign=True)
    policy = Policy(elsewhere=((Path(whole.subject.script).name, frozenset(("SS28",))),))
    for subject, counts in ((whole.subject, False), (replace(whole.subject, script=None), True), (None, True)):
        report = inspect(replace(bare, subject=subject), policy)
        assert [each.rule for each in report.findings] == ["SS28"] * counts
        assert [each.finding.rule for each in report.suppressed] == ["SS28"] * (not counts)


@pytest.mark.parametrize(("threshold", "found"), [(None, []), (100.0, ["SS12"]), (1000.0, [])])
def test_thresholds(tmp_path: Path, threshold: float | None, found: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import jax\nfrom jax import P, NamedSharding\n"
        "mesh = jax.make_mesh((4,), ('x',), axis_types=(jax.sharding.AxisType.Auto,))\n"
        "everywhere = NamedSharding(mesh, P())\n"
        "fn = jax.jit(lambda a: a.sum(), in_shardings=everywhere)\n"
        "fn_inputs = (jax.ShapeDtypeStruct((64,), 'float32', sharding=everywhere),)\n"
    )
    last = last_capture(Request(f"{script}:fn", live=False))
    policy = Policy(thresholds={} if threshold is None else {"SS12": threshold})
    assert [each.rule for each in inspect(last, policy).findings] == found


@pytest.mark.parametrize(
    ("comment", "words"), [("ignore", "names no rule"), ("ignore[SS77]", "no rule SS77"), ("ignore[]", "names no rule")]
)
def test_a_comment_that_cannot_work_is_told_at_once(tmp_path: Path, comment: str, words: str) -> None:
    report = inspect(captured(tmp_path, first=f"  # shardscope: {comment}"))
    assert [found.rule for found in report.findings] == ["SS04", "SS00"]
    assert words in report.findings[1].message


def test_the_comment_is_read_from_the_capture(tmp_path: Path) -> None:
    known = captured(tmp_path, first="  # shardscope: ignore[SS04] meant")
    (tmp_path / "script.py").write_text("raise SystemExit('never run')")
    assert inspect(known).findings == ()


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        (Policy(), {"SS01", "SS02"}),
        (Policy(rules=frozenset({"SS01"})), {"SS01"}),
        (Policy(without=frozenset({"SS01"})), {"SS02"}),
        (Policy(rules=frozenset({"SS01", "SS02"}), without=frozenset({"SS01"})), {"SS02"}),
        (Policy(rules=frozenset()), set()),
    ],
)
def test_rules_that_are_wanted(policy: Policy, wanted: set[str]) -> None:
    assert {rule for rule in ("SS01", "SS02") if policy.wants(rule)} == wanted
