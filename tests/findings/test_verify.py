"""Fixes of findings: written into a copy of the source, captured again, and judged by what comes out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.experiments import values
from shardscope.inspector.experiments.edited import captured_with
from shardscope.inspector.experiments.lab import Lab
from shardscope.inspector.experiments.measured import measured
from shardscope.inspector.experiments.verdict import _wrong_gradients
from shardscope.inspector.findings.fixes.calls import call_at
from shardscope.inspector.findings.fixes.edits import before_the_loop
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.report import Edit, Finding, FindingPlace, Fix, Report, SourcePosition
from shardscope.inspector.report.edits import diff_of, edited
from shardscope.inspector.report.policy import EVERYTHING
from shardscope.parsers.sharding_syntax.mesh import AxisRef
from shardscope.parsers.source import Frame, Source
from shardscope.samples.catalogue import samples

from tests.conftest import SampleCapture
from tests.findings.rewording import reword
from tests.findings.test_variants import PROGRAMS, libtpu
from tests.findings.trying import verified
from tests.sweeps import sampled

pytestmark = pytest.mark.once


def captured(request: Request) -> Capture:
    last = last_capture(request)
    assert last.complete, last.failure
    return last


def request_of(function: str, **more: object) -> Request:
    name, _, attribute = function.partition(":")
    path = next(sample.path for sample in samples() if sample.name == name)
    return replace(Request(f"{path}:{attribute}", probe="none", fingerprints=True), **more)


FIXED = {
    "missing_reduce_scatter": "SS01",
    "gather_then_slice": "SS02",
    "extra_backward_psum": "SS03",
    "psum_of_invariant": "SS04",
}
if jax.__version_info__ >= (0, 7, 2):  # the XLA of those before does not say where it copies whole values
    FIXED["full_rematerialization"] = "SS09"


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_sample_communicates_as_its_repaired_twin(sample: SampleCapture, name: str) -> None:
    request = request_of(f"{name}:faulty", live=False)
    before = Path(request.function.rpartition(":")[0]).read_bytes()
    report = verified(inspect(sample(f"{name}:faulty")), request, inspect)
    tried = [found for found in report.findings if found.experiment is not None]
    assert FIXED[name] in {found.rule for found in tried}
    for found in tried:
        assert found.experiment is not None
        assert found.experiment.helps, found.experiment.why
        assert dict(found.experiment.after.collectives) == dict(
            measured(inspect(sample(f"{name}:repaired"))).collectives
        )
        assert found.experiment.values == "not compared"
        assert found.experiment.after.bytes < found.experiment.before.bytes
    assert Path(request.function.rpartition(":")[0]).read_bytes() == before


@pytest.mark.parametrize(
    "name", [name for name in FIXED if name in ("missing_reduce_scatter", "full_rematerialization")]
)
def test_fixes_are_verified_whatever_the_rules_say(
    name: str, sample: SampleCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reword(monkeypatch)
    report = verified(inspect(sample(f"{name}:faulty")), request_of(f"{name}:faulty", live=False), inspect)
    assert FIXED[name] in {
        found.rule for found in report.findings if found.experiment is not None and found.experiment.helps
    }


PROGRAM = """\
from functools import partial
import jax, jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
mapped = partial(jax.shard_map, mesh=mesh, check_vma=False)

@partial(mapped, in_specs=P("x"), out_specs=P("x"))
def summed(a):
    total = lax.psum(
        a * 2,  # twice
        "x",
    )
    return lax.dynamic_slice_in_dim(total, lax.axis_index("x") * 2, 2)

# Its result differs along x, and the check does not let it through: the change that is tried does not even trace.
untyped = jax.grad(lambda a: mapped(lambda a: lax.psum(jnp.sum(a), "x") + a[0], in_specs=P("x"), out_specs=P())(a))

@partial(mapped, in_specs=P("x"), out_specs=P("x"))
def largest(a):
    whole = lax.all_gather(
        a * 2, "x")
    return a + whole.max(axis=0)

@partial(mapped, in_specs=P("x"), out_specs=P("x"))
def turned(a):
    there = lax.ppermute(a, "x", [(0, 2), (1, 3), (2, 0), (3, 1)])
    return lax.ppermute(jnp.cos(there), "x", [(i, (i + 1) % 4) for i in range(4)])

donated = jax.jit(lambda a, b: ((2 * a).astype(jnp.bfloat16), b + 1), donate_argnums=(0, 1))

gathered = mapped(lambda a: lax.all_gather(a, "x", tiled=True), in_specs=P("x"), out_specs=P())
twice_gathered = jax.grad(lambda a: jnp.sum(gathered(a) ** 2))

typed = partial(jax.shard_map, mesh=mesh)

@partial(typed, in_specs=P("x"), out_specs=P())
def extreme(a):
    whole = lax.all_gather(a, "x", tiled=True)
    return lax.pmax(jnp.sin(whole), "x")

@partial(typed, in_specs=(P("x"), P()), out_specs=P())
def mean(a, w):
    varying = lax.pcast(w, "x", to="varying")
    return lax.pmean(varying * 2, "x") + lax.psum(a.sum(), "x")

@partial(typed, in_specs=P(None, "x"), out_specs=P("x"))
def averaged(a):
    whole = lax.pmean(a @ a.T, "x")
    return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * 2, 2)

@partial(typed, in_specs=P(None, None, "x"), out_specs=P(None, "x"))
def mapped_over(a):
    def one(a):
        whole = lax.psum(a @ a.T, "x")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("x") * 2, 2)
    return jax.vmap(one)(a)

@partial(mapped, in_specs=P("x"), out_specs=P("x"))
def recomputed(a):
    def loss(a):
        @jax.checkpoint
        def step(h, _):
            return jnp.tanh(h @ lax.all_gather(a, "x", tiled=True)), None
        return (lax.scan(step, a, None, 3)[0] ** 2).sum()
    return jax.grad(loss)(a)

@partial(mapped, in_specs=P("x"), out_specs=P("x"))
def accumulated(a):
    def loss(a):
        def step(h, _):
            return jnp.tanh(h @ lax.all_gather(a, "x", tiled=True)), None
        return (lax.scan(step, a, None, 3)[0] ** 2).sum()
    return jax.grad(loss)(a)

recomputed_inputs = accumulated_inputs = (jnp.arange(64.0).reshape(8, 8) / 64,)
averaged_inputs = (jnp.arange(64.0).reshape(8, 8) / 64,)
mapped_over_inputs = (jnp.arange(192.0).reshape(3, 8, 8) / 192,)
extreme_inputs = (jnp.arange(32.0),)
mean_inputs = (jnp.arange(32.0), jnp.arange(8.0))
summed_inputs = untyped_inputs = twice_gathered_inputs = largest_inputs = turned_inputs = (jnp.arange(32.0),)
donated_inputs = (jnp.ones(8), jnp.ones(3))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(PROGRAM)
    return path


def finding(report: Report, rule: str) -> Finding:
    (found,) = [each for each in report.findings if each.rule == rule]
    return found


def test_values_are_compared(script: Path) -> None:
    request = Request(f"{script}:summed", probe="none", fingerprints=True)
    report = inspect(captured(request))
    found = finding(verified(report, request, inspect), "SS01")
    assert found.experiment is not None
    assert (found.experiment.helps, found.experiment.values) == (True, "equal"), found.experiment
    assert [line for line in diff_of(report.program, found.proposal) if line.startswith("+")][1:] == [
        "+    total = lax.psum_scatter(a * 2, 'x', scatter_dimension=0, tiled=True)",
        "+    return total",
    ]
    # A change that gives other numbers is no repair, even where the finding is gone.
    wrong = tuple(replace(e, text=e.text.replace("a * 2", "a * 3")) for e in found.proposal.edits)
    changed = captured_with(report.program, request, wrong)
    assert changed is not None
    assert changed.complete
    assert changed.execution.outputs[0].digest != report.capture.execution.outputs[0].digest
    narrower = tuple(
        replace(e, text=e.text.replace("a * 2", "(a * 2).astype('bfloat16')")) for e in found.proposal.edits
    )
    lab = Lab(report, request, EVERYTHING, 600, lambda what: None)
    for edits, why in ((wrong, "the results are not the same"), (narrower, "the results have other types")):
        found = replace(found, fixes=(Fix("wrong", edits),))
        _, _, fix = next(lab.outcomes([found], search=False))
        assert fix.experiment is not None
        assert (fix.state, fix.experiment.why) == ("values differ", why)


invarying = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="casts of older JAX have other names")


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="with JAX 0.7 nothing is found to verify")
@pytest.mark.parametrize(
    ("function", "rule", "line"),
    sampled(
        [
            ("largest", "SS22", "+    whole = lax.pmax(a * 2, 'x')"),
            ("turned", "SS27", '+    there = lax.ppermute(a, "x", [(i, (i + 3) % 4) for i in range(4)])'),
            (
                "donated",
                "SS20",
                "+donated = jax.jit(lambda a, b: ((2 * a).astype(jnp.bfloat16), b + 1), donate_argnums=(1,))",
            ),
            pytest.param(
                "extreme",
                "SS04",
                """+    whole = lax.all_gather(a, "x", tiled=True, to='invarying')""",
                marks=invarying,
            ),
            pytest.param("mean", "SS04", "+    varying = w", marks=invarying),
            (
                "averaged",
                "SS01",
                "+    whole = (lax.psum_scatter(a @ a.T, 'x', scatter_dimension=0, tiled=True) / lax.axis_size('x'))",
            ),
            (
                "mapped_over",
                "SS01",
                "+        whole = lax.psum_scatter(a @ a.T, 'x', scatter_dimension=0, tiled=True)",
            ),
            ("recomputed", "SS07", "+        before = lax.all_gather(a, 'x', tiled=True)"),
            ("accumulated", "SS07", "+        before = lax.all_gather(a, 'x', tiled=True)"),
            ("twice_gathered", "SS03", "+mapped = partial(jax.shard_map, mesh=mesh, check_vma=True)"),
        ],
        4,
    ),
)
def test_changes_that_work(script: Path, function: str, rule: str, line: str) -> None:
    request = Request(f"{script}:{function}", probe="none", fingerprints=True)
    report = inspect(captured(request))
    found = finding(verified(report, request, inspect), rule)
    assert found.experiment is not None
    assert found.experiment.helps, found.experiment
    # A reduce-scatter may sum in another order, and so does one after a loop.
    assert found.experiment.values in (("equal", "close") if rule in ("SS01", "SS07", "SS08") else ("equal",))
    assert line in diff_of(report.program, found.proposal)


@libtpu
@invarying
@pytest.mark.parametrize("by", sampled(["evaluation", "runs on CPUs"], 1))
def test_numbers_for_another_target_are_compared_here(script: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by != "evaluation":
        monkeypatch.setattr(values, "SECONDS", 0.0)
    request = Request(f"{script}:extreme", target="tpu:v5p:2x2x1")
    report = inspect(captured(request))
    assert report.capture.execution is None  # there is no such device
    found = finding(verified(report, request, inspect), "SS04")
    assert found.experiment is not None
    assert (found.experiment.helps, found.experiment.values) == (True, "equal"), found.experiment
    assert found.experiment.compared_by == by


HELPERS = """
from jax import lax

def total(v):
    scaled = v * 2
    return lax.psum(scaled, "x")

class Layer:
    def total(self, v):
        return lax.psum(v, "x")
"""

CALLERS = """
from functools import partial
import jax, jax.numpy as jnp
from jax import P, lax
from jax.sharding import AxisType
import helpers

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
mapped = partial(jax.shard_map, mesh=mesh, in_specs=P(None, "x"), out_specs=(P("x"), P()), check_vma=False)

def own(v):
    return lax.dynamic_slice_in_dim(v, lax.axis_index("x") * 2, 2)

def by_function(a):
    first = own(helpers.total(a * 2))
    return first, helpers.total(jnp.sin(a))

def by_method(a):
    layer = helpers.Layer()
    return own(layer.total(a * 2)), layer.total(jnp.cos(a)) + layer.total(a)

functions = mapped(by_function)
methods = mapped(by_method)
functions_inputs = methods_inputs = (jnp.arange(64.0).reshape(8, 8),)
"""


@pytest.mark.parametrize(("function", "says"), [("functions", "1 other call"), ("methods", "2 other calls")])
def test_a_helper_in_another_file_is_not_edited_without_a_word(tmp_path: Path, function: str, says: str) -> None:
    """Its other call's result has another shape with the change, as the captured program shows."""
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "callers.py").write_text(CALLERS)
    request = Request(f"{tmp_path / 'callers.py'}:{function}", probe="none", fingerprints=True)
    report = inspect(captured(request))
    found = finding(report, "SS01")
    assert f"; that changes {says} of total" in found.fixes[0].title
    tried = finding(verified(report, request, inspect), "SS01").experiment
    assert tried is not None
    assert not tried.helps
    assert any("result[1] f32[8,2] → f32[2,2]" in change for change in tried.changes)


LOOPS = """\
from jax import lax

def outer(a, w):
    def step(c, v):
        return c @ lax.all_gather(w, "x") + lax.psum(v, "x"), None

    return lax.scan(step, a, a)[0] + lax.scan(lambda c, _: (c * lax.pmax(w, "y"), None), a, None, 3)[0]

def alone(c, w):
    return c @ lax.all_gather(w, "z")
"""


@pytest.mark.parametrize(
    ("function", "words", "line"),
    [
        ("all_gather", "def step", "    before = lax.all_gather(w, 'x')"),
        ("pmax", "return lax.scan", "    before = lax.pmax(w, 'y')"),
        ("psum", "", ""),  # of what the loop goes through
    ],
)
def test_what_does_not_change_goes_before_the_loop(function: str, words: str, line: str) -> None:
    program = Program(Capture(script_text=Source("loops.py", LOOPS.encode())))
    (at, *_) = (number for number, text in enumerate(LOOPS.splitlines(), 1) if f"lax.{function}(" in text)
    edits = before_the_loop(
        program, call_at(program, SourcePosition((Frame("loops.py", "", at),), "exact"), (function,))
    )
    after = (edited(program, edits) or {}).get("loops.py", b"").decode().splitlines()
    assert bool(edits) == bool(words)
    if words:
        (before,) = (number for number, text in enumerate(after) if text == line)
        assert words in after[before + 1]
        assert not any(f"lax.{function}(" in text for text in after[before + 1 : -3])


def test_a_body_that_stands_alone_is_left_as_it_is() -> None:
    program = Program(Capture(script_text=Source("loops.py", LOOPS.encode())))
    place = SourcePosition((Frame("loops.py", "", len(LOOPS.splitlines())),), "exact")
    assert before_the_loop(program, call_at(program, place, ("all_gather",))) == ()


def test_a_change_that_does_not_trace_is_told(script: Path) -> None:
    request = Request(f"{script}:untyped", live=False)
    found = finding(verified(inspect(captured(request)), request, inspect), "SS03")
    assert found.experiment is not None
    assert not found.experiment.helps
    assert "stops while tracing" in found.experiment.why


def test_modules_that_the_script_imports(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("NUMBER = 1\n")
    (package / "outer.py").write_text("from . import inner\n\ndef fn():\n    return inner.NUMBER + 0.5\n")
    request = Request(f"{package / 'outer.py'}:fn", probe="none")
    plain = captured(request)
    inner = str(package / "inner.py")
    changed = captured_with(Program(plain), request, [Edit(inner, 1, 9, 1, 10, "41")])
    assert changed is not None
    assert [each.execution.outputs[0].values for each in (plain, changed)] == ["1.5", "41.5"]
    # Nothing that a later run would take for the user's is left behind.
    assert captured(request).execution.outputs[0].values == "1.5"


def test_edits_that_do_not_fit(sample: SampleCapture) -> None:
    known = Program(sample("psum:psum"))
    file = known.script.name
    assert edited(known, [Edit("/nowhere.py", 1, 0, 1, 1, "")]) is None
    assert edited(known, [Edit(file, 10_000, 0, 10_000, 1, "")]) is None
    assert edited(known, [Edit(file, 1, 0, 1, 3, "a"), Edit(file, 1, 2, 1, 4, "b")]) is None
    assert edited(known, [Edit(file, 1, 3, 1, 0, "")]) is None
    assert captured_with(known, Request("x.py:f"), []) is None


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 gives some stacks no frames between")
def test_a_gather_that_several_constraints_need_is_one_finding() -> None:
    """Of one helper's line: which constraints share a gather, the gathers that the changed programs have say."""
    request = Request(f"{PROGRAMS / 'helper.py'}:program", live=False)
    report = inspect(captured(request))
    assert sum(each.kind == "all-gather" for each in report.collectives if each.stage == "hlo") == 2
    found = [each for each in report.findings if each.rule == "SS02"]
    assert [sum(text.count("along(") for text in removed(report, each)) for each in found] == [6, 2]
    for each in found:
        changed = captured_with(report.program, request, each.fixes[0].edits)
        assert changed is not None
        after = inspect(changed)
        assert [each.kind for each in after.collectives if each.stage == "hlo"] == ["all-gather"]
        assert sum(each.rule == "SS02" for each in after.findings) == 1


def removed(report: Report, found: Finding) -> list[str]:
    return [line for line in diff_of(report.program, found.fixes[0]) if line.startswith("-  ")]


def test_gradients_that_are_still_wrong() -> None:
    """Those of the same value or by another rule: one of another value may have its own mistake."""
    data, model, nowhere = AxisRef("data"), AxisRef("model"), FindingPlace("w", SourcePosition())
    fixed = Finding("SS24", "wrong-gradient", "error", "proved", (data,), "m", nowhere, subject="w")
    others = {
        "the same": fixed,
        "another value": replace(fixed, subject="b"),
        "another axis": replace(fixed, axes=(model,)),
        "another rule": replace(fixed, rule="SS03", subject="b"),
        "a cost": replace(fixed, rule="SS03", severity="warning"),
        "no gradient": replace(fixed, rule="SS01"),
    }
    after = replace(inspect(Capture()), findings=tuple(replace(found, message=name) for name, found in others.items()))
    assert list(_wrong_gradients(after, fixed)) == ["still wrong: the same", "still wrong: another rule"]
    unnamed = replace(fixed, subject="")
    after = replace(after, findings=(replace(unnamed, message="which?"), *after.findings))
    assert list(_wrong_gradients(after, unnamed)) == ["still wrong: another rule"]
