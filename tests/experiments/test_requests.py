"""Requests that cost more than they have to: found by price, tried as edits, counted in the changed program."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from shardscope.inspector.capture.model import Execution, OutputSummary
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.experiments import suggest
from shardscope.inspector.experiments.lab import tried
from shardscope.inspector.experiments.pricing import prices, searched
from shardscope.inspector.experiments.rewrites import rewrites
from shardscope.inspector.experiments.suggest import suggested
from shardscope.inspector.experiments.values import compared, for_numbers
from shardscope.inspector.experiments.written import fixes_of
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json.suggestions import suggestions_json_schema, suggestions_to_json
from shardscope.inspector.report import Experiment, Finding, Report
from shardscope.inspector.report.edits import edited
from shardscope.inspector.values.distances import ROUNDING

from tests.experiments import programs
from tests.sweeps import sampled

BYTES = {"f32": 4, "s32": 4, "u32": 4}


def report_of(tmp_path: Path, text: str) -> tuple[Report, Request]:
    (tmp_path / "script.py").write_text(text)
    request = Request(f"{tmp_path / 'script.py'}:step", probe="none")
    return inspect(last_capture(request)), request


def counted(hlo: str) -> int:
    """Bytes that a device sends by the text of a compiled module without loops: an independent count."""
    total = 0.0
    for line in hlo.splitlines():
        found = re.search(r"= (.*?) (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)\(", line)
        if not found:
            continue
        size = sum(
            BYTES[dtype] * eval("*".join(dims.split(",")) or "1")
            for dtype, dims in re.findall(r"\b(f32|s32|u32)\[([\d,]*)\]", found[1])
        )
        members = group_size(line)
        share = (members - 1) / members
        factor = {"all-reduce": 2 * share, "collective-permute": 1, "reduce-scatter": members - 1}.get(found[2], share)
        total += size * factor
    return round(total)


def group_size(line: str) -> int:
    """The number of devices in a group, in each of the three spellings."""
    if found := re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", found[1]))
        return math.prod(int(sizes[axis]) for axis in re.findall(r"'(\w+)'", found[2]))
    if found := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(found[1])
    found = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
    return len(found[1].split(",")) if found else 2


def first_fix(report: Report) -> Finding:
    found = report.findings[0]
    assert found.severity == "warning", [(each.rule, each.message, each.fixes) for each in report.findings]
    assert found.fixes[0].helps
    return found


def first_experiment(tmp_path: Path, text: str) -> tuple[Report, Finding, Experiment]:
    before, request = report_of(tmp_path, text)
    found = first_fix(tried(before, request, seconds=300))
    done = found.fixes[0].experiment
    assert done is not None
    return before, found, done


@pytest.mark.parametrize(
    ("text", "line"),
    sampled(
        [
            (programs.CACHE, "out_shardings=(S("),
            (programs.NAMED, "out_shardings=(S("),
            (programs.VALUES, 'wsc(v, S("data", "model"))'),
            (programs.HELPER, "jnp.tanh(h)"),
            (programs.REMAT, "jax.checkpoint(block)"),
            (programs.PATTERNS, '"up|down"'),
            (programs.LOGICAL, '"batch": "model"'),
            (programs.MAPPED, '"batch": "data"'),
            (programs.RANDOM_BITS, "jax_threefry_partitionable"),
            (programs.CAST_TWICE, "h = jnp"),
            (programs.EXPLICIT, "jax.sharding.reshard(w, P())"),
            (programs.NAMELESS, '"ffn"'),
            (programs.MOMENTS, "held = jax.tree.map"),
            (programs.TREE, '"acc": layout.whole'),
            (programs.ALIKE, '"model", "data")'),
            (programs.ADAPTERS, "up = dict"),
            (programs.TIME_MAJOR, 'rows = S("data")'),
            (programs.EARLY, "everyone"),
            (programs.REPEATED, "    k = "),
            (programs.HALO, "above"),
            (programs.OTHER_NAME, "logits = constrain"),
        ],
        3,
        1,
    ),
    ids=[
        "cache",
        "named",
        "values",
        "helper",
        "remat",
        "patterns",
        "logical",
        "mapped",
        "random bits",
        "cast twice",
        "explicit",
        "nameless",
        "moments",
        "tree",
        "alike",
        "adapters",
        "time major",
        "early",
        "repeated",
        "halo",
        "other name",
    ],
)
def test_the_first_fix_saves_what_it_says(tmp_path: Path, text: str, line: str) -> None:
    """Its bytes are those of the changed program, compiled anew and counted by another reader."""
    before, request = report_of(tmp_path, text)
    found = first_fix(tried(before, request, seconds=300))
    done = found.fixes[0].experiment
    assert done is not None
    assert done.values in (("not compared",) if text == programs.RANDOM_BITS else ("equal", "close"))
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert [each for each in text.splitlines() if each not in changed.decode().splitlines()] == [
        each for each in text.splitlines() if line in each and "def " not in each
    ]
    after, _ = report_of(tmp_path, changed.decode())
    hlo = [report.capture.stage("hlo") for report in (before, after)]
    sent = [counted(stage.source.text()) for stage in hlo if stage is not None]
    assert [done.before.bytes, done.after.bytes] == sent
    assert sent[1] < 0.9 * sent[0]


@pytest.mark.once
def test_memory_may_be_worth_the_bytes_that_are_sent_for_it(tmp_path: Path) -> None:
    before, found, done = first_experiment(tmp_path, programs.PAIRS)
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    after, _ = report_of(tmp_path, changed.decode())
    hlo = after.capture.stage("hlo")
    assert hlo is not None
    assert (done.after.bytes, done.values) == (counted(hlo.source.text()), "close")
    assert 2 * (done.after.memory or 0) < (done.before.memory or 0)


def test_gradients_of_loops_in_loops_are_summed_after_the_outer_one(tmp_path: Path) -> None:
    before, found, done = first_experiment(tmp_path, programs.NESTED)
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    added = [each for each in changed.decode().splitlines() if each not in programs.NESTED.splitlines()]
    assert added == ["    w = jax.tree.map(lambda leaf: jax.lax.pcast(leaf, 'data', to='varying'), w)"]
    once = 2 * 3 / 4 * (2 * 64 * 64) * 4
    assert (done.before.bytes, done.after.bytes, done.values) == (8 * once, once, "close")


@pytest.mark.thorough
@pytest.mark.once
def test_a_result_that_is_no_state_is_requested_as_it_is_computed(tmp_path: Path) -> None:
    """The program of a script that matters most is the one that is tried, though with the fix another one is."""
    (tmp_path / "script.py").write_text(programs.LOGITS)
    request = Request(str(tmp_path / "script.py"), probe="none")
    before = inspect(last_capture(request))
    found = first_fix(tried(before, request, seconds=300))
    done = found.fixes[0].experiment
    assert done is not None
    assert (done.before.bytes, done.after.bytes, done.values) == (8 * 4096 * 4 // 2, 0, "equal")
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "NamedSharding(mesh, P('data', 'model'))" in changed.decode()
    (tmp_path / "script.py").write_bytes(changed)
    after = last_capture(request)
    assert [before.capture.chosen, after.chosen] == [("forward", 0), ("best", 0)]


@pytest.mark.thorough
@pytest.mark.once
@pytest.mark.parametrize("fields", ["    params: dict\n    mu: dict\n", "    mu: dict\n    params: dict\n"])
def test_moments_get_the_spec_of_their_parameter(tmp_path: Path, fields: str) -> None:
    """A fix of its line, in a function that makes the layout of all of a state, divides its memory by 4 or more."""
    before, request = report_of(tmp_path, programs.STATE.replace("    params: dict\n    mu: dict\n", fields))
    fixes = [fix for found in tried(before, request, seconds=300).findings for fix in found.fixes if fix.helps]
    lines = programs.STATE.splitlines()
    mine = [fix for fix in fixes if [lines[edit.line - 1].strip()[:3] for edit in fix.edits] == ["mu="]]
    done = [each.experiment for each in mine if each.experiment is not None]
    assert max((each.before.held or 0) - (each.after.held or 0) for each in done) >= 2 * 64 * 256 * 4 * 3 // 4


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "line"),
    sampled([(programs.RANKED, "device_put(moments()"), (programs.SIBLING, "lambda leaf: P()")], 1),
)
def test_leaves_of_a_state_get_the_spec_that_fits_them(tmp_path: Path, text: str, line: str) -> None:
    """A fix of one line divides the moments by 4; the count of steps stays whole."""
    before, request = report_of(tmp_path, text)
    fixes = [fix for found in tried(before, request, seconds=300).findings for fix in found.fixes if fix.helps]
    lines = text.splitlines()
    mine = [fix for fix in fixes if {line in lines[edit.line - 1] for edit in fix.edits} == {True}]
    done = [each.experiment for each in mine if each.experiment is not None]
    assert max((each.before.held or 0) - (each.after.held or 0) for each in done) >= 2 * 64 * 256 * 4 * 3 // 4


@pytest.mark.once
def test_a_jit_that_a_function_returns_is_donated(tmp_path: Path) -> None:
    """Its calls are those of the name that the function's result is assigned to."""
    before, _ = report_of(tmp_path, programs.RANKED)
    (fix,) = next(each.fixes for each in rewrites(before) if each.rule == "SS20")
    (changed,) = (edited(before.program, fix.edits) or {}).values()
    assert "return jax.jit(step, donate_argnums=(0, 1))" in changed.decode()
    kept, _ = report_of(tmp_path, programs.RANKED.replace("    for _ in", "    before = p\n    for _ in"))
    assert not [each for each in rewrites(kept) if each.rule == "SS20" and "donate p" in each.fixes[0].title]


@pytest.mark.once
def test_a_batch_may_be_held_in_fewer_parts(tmp_path: Path) -> None:
    """On the other axis a device holds more of it, and less in all."""
    before, request = report_of(tmp_path, programs.WRONG_AXIS)
    fixes = [fix for found in tried(before, request, seconds=300).findings for fix in found.fixes if fix.helps]
    lines = programs.WRONG_AXIS.splitlines()
    mine = [fix.experiment for fix in fixes if ["x = jax" in lines[edit.line - 1] for edit in fix.edits] == [True]]
    (done,) = dict.fromkeys((each.before.bytes, each.after.bytes, each.values) for each in mine if each is not None)
    hlo = before.capture.stage("hlo")
    assert hlo is not None
    assert done[0] == counted(hlo.source.text())
    assert 3 * (done[1] or 0) < done[0]
    assert done[2] == "close"


def test_fixes_that_narrow_may_differ_by_that_rounding() -> None:
    one, other = (
        OutputSummary("result", "f32[4]", None, digest=name, projections=(1.0, 0.5, shift))
        for name, shift in (("one", 0.2), ("other", 0.21))
    )
    runs = Execution((one,)), Execution((other,))
    assert compared(*runs).values == "differ"
    assert compared(*runs, ROUNDING["bf16"]).values == "close"
    assert compared(*runs, ROUNDING["f64"]).values == "differ"


@pytest.mark.once
def test_a_mesh_is_set_for_constraints_that_look_for_one(tmp_path: Path) -> None:
    before, _ = report_of(tmp_path, programs.ENTERED)
    (fix,) = next(each.fixes for each in rewrites(before) if "Flax" in each.message)
    (changed,) = (edited(before.program, fix.edits) or {}).values()
    after, _ = report_of(tmp_path, changed.decode())
    hlo = [report.capture.stage("hlo") for report in (before, after)]
    sent = [counted(stage.source.text()) for stage in hlo if stage is not None]
    assert 10 * sent[1] < sent[0]


@pytest.mark.once
def test_moments_that_a_jit_makes_are_made_without_it(tmp_path: Path) -> None:
    """Then they are sharded as their parameters are, which eager functions keep."""
    before, request = report_of(tmp_path, programs.MADE)
    found = next(each for each in tried(before, request, seconds=300).findings if each.rule == "SS34")
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "state = init(p)" in changed.decode()
    after, _ = report_of(tmp_path, changed.decode())
    specs = [{each.path: each.spec for each in report.capture.arguments} for report in (before, after)]
    assert [each["state['mu']['w']"] == each["p['w']"] for each in specs] == [False, True]


@pytest.mark.once
def test_moments_that_are_placed_like_a_count_are_placed_like_their_parameter(tmp_path: Path) -> None:
    before, request = report_of(tmp_path, programs.PLACED)
    fixes = [fix for found in tried(before, request, seconds=300).findings for fix in found.fixes if fix.helps]
    done = [(each.experiment, [edit.text for edit in each.edits]) for each in fixes if each.experiment is not None]
    saved = {(each.before.held or 0) - (each.after.held or 0) for each, texts in done if texts == ["split", "split"]}
    assert saved == {2 * 2 * 64 * 256 * 4 * 7 // 8}


@pytest.mark.once
def test_a_loss_that_is_averaged_twice_is_averaged_once(tmp_path: Path) -> None:
    """The inner mean is left out, with the sum that it is transposed to: the numbers stay."""
    before, request = report_of(tmp_path, programs.TWICE)
    found = first_fix(tried(before, request, seconds=300))
    assert found.fixes[0].experiment is not None
    assert found.fixes[0].experiment.values in ("equal", "close")
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "return jnp.mean(jnp.tanh(x @ w) ** 2)" in changed.decode()


@pytest.mark.parametrize(
    ("named", "mesh"),
    [("rows, columns = shardings()", "rows.mesh"), ("", "jax.typeof(x).sharding.mesh")],
    ids=["sharding", "nothing"],
)
@pytest.mark.once
def test_rows_in_another_order_are_sharded_by_a_mesh_without_a_name(tmp_path: Path, named: str, mesh: str) -> None:
    """It is that of a sharding which a function returns beside others, or else that of the rows."""
    _, found, done = first_experiment(tmp_path, programs.SHUFFLED.replace("ROWS", named))
    assert found.fixes[0].edits[-1].text.endswith(f", NamedSharding({mesh}, P('d')))")
    assert (done.after.bytes or 0) < 0.5 * (done.before.bytes or 0)


@pytest.mark.once
def test_an_axis_goes_from_the_rule_of_one_dimension_to_that_of_another(tmp_path: Path) -> None:
    """Both rules at once: with one of them, an axis is in a spec twice. Values are of inputs that are not chaotic."""
    _, found, done = first_experiment(tmp_path, programs.STACKED)
    assert sorted(edit.text for edit in found.fixes[0].edits) == ["('model', 'data')", "None"]
    assert done.values == "close"
    assert (done.after.bytes or 0) < 0.5 * (done.before.bytes or 0)
    assert (done.after.memory or 0) < 0.5 * (done.before.memory or 0)


@pytest.mark.parametrize(
    ("read", "given", "line"),
    [
        ("params", "layers", "params = jax.lax.with_sharding_constraint(params, NamedSharding(mesh, P()))"),
        ("state", '{"params": layers, "mu": layers}', "NamedSharding(mesh, P())), x), S("),
    ],
    ids=["argument", "part"],
)
def test_parameters_that_a_loop_uses_are_gathered_before_it(tmp_path: Path, read: str, given: str, line: str) -> None:
    """Each weight once: its shards are 7 of 8 parts of what it is."""
    tree = "params" if read == "params" else 'state["params"]'
    text = programs.SAMPLED.replace("READ", read).replace("PARAMS", tree).replace("GIVEN", given)
    before, found, done = first_experiment(tmp_path, text)
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert line in changed.decode()
    assert done.after.bytes == 4 * 256 * 1024 * 4 * 7 // 8
    assert done.values == "close"


@pytest.mark.parametrize(
    "loop",
    [
        "total = jax.lax.map(lambda row: clipped(w, *row), (x, y)).sum(0)",
        "total, _ = jax.lax.scan(lambda sum, row: (sum + clipped(w, *row), None), jnp.zeros_like(w), (x, y))",
    ],
    ids=["map", "scan"],
)
def test_each_device_loops_over_its_own_rows(tmp_path: Path, loop: str) -> None:
    """An eighth of the products."""
    _, found, done = first_experiment(tmp_path, programs.MAPPED_ROWS.replace("LOOP", loop))
    assert found.rule == "SS33"
    assert (done.after.bytes or 0) < (done.before.bytes or 0)
    assert (done.after.flops or 0) * 8 == done.before.flops
    assert done.values == "close"


@pytest.mark.parametrize(
    ("text", "now", "wanted"),
    [
        (programs.HEADS, 'S("data", None)', "S('data', None, 'model')"),
        (programs.LISTED, 'of("batch", "length")', "of('batch', 'length', 'heads')"),
    ],
    ids=["written out", "logical"],
)
def test_devices_hold_what_they_use(tmp_path: Path, text: str, now: str, wanted: str) -> None:
    """Half of both arrays, which are returned as they came: as arguments and as results."""
    before, found, done = first_experiment(tmp_path, text)
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert changed.decode() == text.replace(now, wanted)
    assert done.before.bytes == done.after.bytes
    assert (done.before.held or 0) - (done.after.held or 0) == 4 * (8 * 64 * 8 * 16 * 4) // 4 // 2


def test_a_rule_that_is_a_field_is_changed_for_a_weight_and_a_constraint(tmp_path: Path) -> None:
    before, found, done = first_experiment(tmp_path, programs.FIELDS)
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert changed.decode() == programs.FIELDS.replace("vocab: str | None = None", "vocab: str | None = 'model'")
    assert (done.after.bytes or 0) < 0.6 * (done.before.bytes or 0)


@pytest.mark.parametrize(
    "loop",
    sampled(
        [
            "(total, _), _ = jax.lax.scan(hop, (x, x), jnp.arange(4))",
            "(total, _), _ = jax.lax.scan(hop, (x, x), jnp.ones((4, 1, 32)), unroll=1)",
            "total, _ = jax.lax.fori_loop(0, 3 + 1, turn, (x, x))",
            "total, _ = jax.lax.scan(lambda c, _: hop(c, 2), (x, x), length=4)[0]",
        ],
        2,
        0,
    ),
)
def test_the_last_iteration_of_a_ring_sends_nothing(tmp_path: Path, loop: str) -> None:
    _, found, done = first_experiment(tmp_path, programs.RING.replace("LOOP", loop))
    assert found.rule == "SS27"
    assert done.values in ("equal", "close")
    assert 4 * (done.after.bytes or 0) == 3 * (done.before.bytes or 0) > 0


@pytest.mark.once
def test_a_ring_whose_parts_are_kept_is_left_alone(tmp_path: Path) -> None:
    kept = "(total, _), parts = jax.lax.scan(hop, (x, x), jnp.arange(4)); total = total + parts.sum(0)"
    before, _ = report_of(tmp_path, programs.RING.replace("LOOP", kept))
    assert [fix.edits for found in before.findings if found.rule == "SS27" for fix in found.fixes] == [()]


SMALL_STEPS = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))

@jax.jit
def step(w, x):
    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)
    return jax.tree.map(lambda w, g: w - 1e-6 * g, w, GRADIENT)

if __name__ == "__main__":
    x = jax.random.normal(jax.random.key(0), (64, 32))
    step(jax.random.normal(jax.random.key(1), (32, 32)), jax.device_put(x, NamedSharding(mesh, P("d"))))
"""


@pytest.mark.parametrize(
    ("gradient", "values"),
    [
        ("sum(jax.grad(loss)(w, part) for part in jnp.split(x, 4))", "equal"),
        ("jax.grad(loss)(w, x) / 8", "differ"),
        ("jax.grad(loss)(w, x[:32])", "differ"),
    ],
)
def test_a_small_step_is_compared_by_what_it_changes(tmp_path: Path, gradient: str, values: str) -> None:
    """The results differ by 1e-5 of their norm at most, as much as rounding may explain."""

    def run(text: str, *, nudged: bool = False) -> Execution | None:
        (tmp_path / "script.py").write_text(SMALL_STEPS.replace("GRADIENT", text))
        request = for_numbers(Request(f"{tmp_path / 'script.py'}:step", devices=8))
        return last_capture(replace(request, nudged=nudged)).execution

    plain = "jax.grad(loss)(w, x)"
    found = compared(run(plain), run(gradient), nudged=lambda: run(plain, nudged=True))
    assert found.values == values


@pytest.mark.once
def test_state_that_is_not_trained_may_be_whole(tmp_path: Path) -> None:
    """A queue that is gathered where it is used, of which no gradient is taken: not so the parameters beside it."""
    before, _ = report_of(tmp_path, programs.QUEUE)
    found = prices(before.program, None, 60, before.most_sent).candidates
    whole = [each for each in found if "P()" in [change.spec for change in each.changes]]
    assert [[change.name for change in each.changes] for each in whole] == [["state['queue']"]]
    (changed,) = (edited(before.program, fixes_of(before, whole[0])[0].edits) or {}).values()
    assert "queue=whole" in changed.decode()
    after, _ = report_of(tmp_path, changed.decode())
    specs = [{each.path: each.spec for each in report.capture.arguments} for report in (before, after)]
    assert {path for path, spec in specs[1].items() if spec != specs[0][path]} == {"state['queue']"}


@pytest.mark.once
def test_state_that_each_call_replaces_is_donated(tmp_path: Path) -> None:
    """The compiled program then has an alias for it. One that the script keeps is left alone."""
    before, request = report_of(tmp_path, programs.KEPT)
    found = next(each for each in tried(before, request, seconds=300).findings if each.rule == "SS20")
    assert found.fixes[0].helps
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "donate_argnums=(0, 1)" in changed.decode()
    after, _ = report_of(tmp_path, changed.decode())
    aliased = [report.capture.memory.aliased for report in (before, after) if report.capture.memory is not None]
    assert (aliased[1] or 0) - (aliased[0] or 0) == 256 * 256 * 4 // 8
    named, _ = report_of(tmp_path, programs.KEPT.replace("donate_argnums=0", 'donate_argnames="params"'))
    fixes = [fix for each in rewrites(named) if each.rule == "SS20" for fix in each.fixes]
    assert [edit.text for fix in fixes for edit in fix.edits] == ["('params', 'ema')"]
    kept = programs.KEPT.replace("    for _", "    first = ema\n    for _").replace("main()\n", "    print(first)\n", 1)
    before, request = report_of(tmp_path, kept)
    assert not [each for each in tried(before, request, seconds=300).findings if "ema" in each.message]


RANDOM = """
import random
import numpy as np
seen = [random.random(), np.random.rand()]
import jax
step = jax.jit(lambda *values: sum(values))
def main():
    return step(*seen, random.random(), np.random.randn(8), np.random.default_rng().normal(size=8))
if __name__ == "__main__":
    main()
"""


def test_random_numbers_without_a_seed_are_the_same_in_each_run(tmp_path: Path) -> None:
    """Else each change of the program would seem to change its results."""
    (tmp_path / "script.py").write_text(RANDOM)
    runs = [last_capture(Request(f"{tmp_path / 'script.py'}:step", probe="none", fingerprints=True)) for _ in "ab"]
    found = [run.execution.outputs[0] for run in runs if run.execution is not None]
    assert len(found) == 2
    assert found[0].digest == found[1].digest is not None
    assert found[0].projections == found[1].projections


@pytest.mark.once
def test_a_batch_is_divided_among_all_devices(tmp_path: Path) -> None:
    """The first fix spreads it over the axis that computes copies: each device then has a quarter of the products."""
    before, request = report_of(tmp_path, programs.BATCH)
    done = first_fix(tried(before, request, seconds=300)).fixes[0].experiment
    assert done is not None
    assert done.values in ("equal", "close")
    assert (done.before.flops or 0) == 4 * (done.after.flops or 1)


@pytest.mark.once
def test_a_clean_program_has_no_warnings(tmp_path: Path) -> None:
    before, request = report_of(tmp_path, programs.CLEAN)
    found = tried(before, request, seconds=300)
    assert [each for each in found.findings if each.severity != "info"] == []
    assert all(fix.why for each in found.findings for fix in each.fixes if fix.state == "idea")


def test_prices_order_requests(tmp_path: Path) -> None:
    """The price of the request that is right is the lowest, and today's is not below the compiled program's."""
    before, _ = report_of(tmp_path, programs.CACHE)
    found = prices(before.program, None, 60)
    stage = before.capture.stage("hlo")
    assert stage is not None
    assert 1 <= found.today / counted(stage.source.text()) < 1.5
    best = found.candidates[0]
    assert [(each.kind, each.name, each.spec) for each in best.changes] == [
        ("result", "result[1]", "P('data', None, 'model')")
    ]


@pytest.mark.once
def test_suggestions_for_a_jit_that_names_shardings(tmp_path: Path) -> None:
    """Arguments, and results that become them, get others than `in_shardings` and `out_shardings` name."""
    text = programs.KEPT.replace("donate_argnums=0", 'in_shardings=({"w": S}, {"w": S}, None, S), donate_argnums=0')
    before, request = report_of(tmp_path, text)
    rows = suggested(before.capture, request, 60).rows
    assert len(rows) > 1
    assert rows[0].cost < min(row.cost for row in rows if row.requests is None)
    assert rows[0].experiment.values in ("equal", "close")


@pytest.mark.once
def test_keys_that_every_device_holds_send_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are more than today's arguments, and less than what is gathered today."""
    before, request = report_of(tmp_path, programs.ATTENTION)
    assert before.capture.arguments[0].spec == "P(None, 'x')"
    monkeypatch.setattr(suggest, "MAX_COMPILED", 6)
    found = suggested(before.capture, request, 120)
    today = next(row for row in found.rows if row.requests is None)
    assert (today.cost > 0, found.rows[0].cost) == (True, 0)
    assert found.rows[0].memory < today.memory


def test_suggestions_may_repeat_what_costs_less_than_it_sends(tmp_path: Path) -> None:
    """A quarter more is computed on each device, and nine tenths less is sent."""
    before, _ = report_of(tmp_path, programs.TIED)
    today, first, *_ = searched(before.program, None, 60).rows
    assert {each.name: each.spec for each in first.changes}.items() >= {
        ("w['dense']", "P()"),
        ("w['table']", "P(('data', 'model'))"),
    }
    assert first.price < 0.2 * today.price


@pytest.mark.once
def test_suggestions_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of all assignments by price is compiled; what takes more memory than today is never first.

    The edits of a row, made by hand, give a program that sends as much, counted by another reader.
    """
    before, request = report_of(tmp_path, programs.VALUES)
    monkeypatch.setattr(suggest, "MAX_COMPILED", 10)
    found = suggested(before.capture, request, 120)
    first, today = found.rows[0], next(row for row in found.rows if row.requests is None)
    assert all(row.experiment.before == today.experiment.after for row in found.rows)
    assert first.memory <= 1.002 * today.memory
    listed = searched(before.program, None, 4)
    assert listed.size >= len(listed.rows) > 1
    assert first.cost <= min(row.cost for row in found.rows if row.memory <= first.memory)
    written = next(row for row in found.rows if row.edits)
    (changed,) = (edited(before.program, written.edits) or {}).values()
    after, _ = report_of(tmp_path, changed.decode())
    assert {each.path: each.spec for each in after.capture.arguments}.items() >= written.arguments.items()
    hlo = after.capture.stage("hlo")
    assert hlo is not None
    assert counted(hlo.source.text()) == written.experiment.after.bytes
    constrained = [row for row in found.rows if any("constrain" in each for each in row.requests or ())]
    assert {row.edits != () for row in constrained} == {True}
    schema = json.loads((Path(__file__).parents[2] / "docs" / "suggestions.schema.json").read_text())
    assert schema == suggestions_json_schema()
    document = json.loads(suggestions_to_json(found))
    Draft202012Validator(schema).validate(document)
    assert [each["best"] for each in document["rows"]] == [row.is_best for row in found.rows]


@pytest.mark.once
def test_a_copy_of_parameters_is_placed_as_they_are(tmp_path: Path) -> None:
    """It was placed whole behind an attribute: left as it was made, a device holds an eighth of it."""
    (tmp_path / "script.py").write_text(programs.AVERAGED)
    request = Request(f"{tmp_path / 'script.py'}:Trainer.step", probe="none")
    before = inspect(last_capture(request))
    found = next(each for each in tried(before, request, seconds=300).findings if each.rule == "SS34")
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "self.ema = jax.tree.map(jnp.copy, self.p)" in changed.decode()
    done = found.fixes[0].experiment
    assert done is not None
    assert done.values in ("equal", "close")
    assert (done.before.held or 0) - (done.after.held or 0) == 2 * 2 * 64 * 256 * 4 * 7 // 8


@pytest.mark.once
def test_arguments_of_a_jitted_method_are_donated(tmp_path: Path) -> None:
    """Its calls are those of an object of its class; another name for one of them keeps it."""
    (fix,) = next(each.fixes for each in rewrites(of_method(tmp_path, programs.AVERAGED)) if each.rule == "SS20")
    assert [edit.text for edit in fix.edits] == [", donate_argnums=(0, 1)"]
    kept = programs.AVERAGED.replace("        x = jax.dev", "        first = trainer.ema\n        x = jax.dev")
    (fix,) = next(each.fixes for each in rewrites(of_method(tmp_path, kept)) if each.rule == "SS20")
    assert [edit.text for edit in fix.edits] == [", donate_argnums=0"]


def of_method(tmp_path: Path, text: str) -> Report:
    (tmp_path / "script.py").write_text(text)
    return inspect(last_capture(Request(f"{tmp_path / 'script.py'}:Trainer.step", probe="none")))


@pytest.mark.once
def test_all_arguments_are_donated_where_none_is_kept(tmp_path: Path) -> None:
    """Equinox donates all or none: the compiled program has an alias then. A batch that is made once is kept."""
    pytest.importorskip("equinox")
    before, request = report_of(tmp_path, programs.FILTERED)
    found = next(each for each in tried(before, request, seconds=300).findings if each.rule == "SS20")
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "@eqx.filter_jit(donate='all')" in changed.decode()
    after, _ = report_of(tmp_path, changed.decode())
    aliased = [report.capture.memory.aliased for report in (before, after) if report.capture.memory is not None]
    assert (aliased[1] or 0) - (aliased[0] or 0) == 64 * 256 * 4 // 8
    others = programs.FILTERED.replace("eqx.filter_jit", 'eqx.filter_jit(donate="all-except-first")')
    before, _ = report_of(tmp_path, others.replace("grads = ", "w = p; grads = "))
    (fix,) = next(each.fixes for each in rewrites(before) if each.rule == "SS20")
    assert [edit.text for edit in fix.edits] == ["'all'"]
    made = '        x = jax.device_put(np.ones((64, 64), np.float32).copy(), S("data"))\n'
    once = programs.FILTERED.replace(made, "").replace("    for _", f"{made[4:]}    for _")
    before, _ = report_of(tmp_path, once)
    assert not [each for each in rewrites(before) if each.rule == "SS20"]


@pytest.mark.once
@pytest.mark.parametrize(("axis", "state"), [("-1", "tried"), ("0", "values differ")])
def test_what_is_sent_twice_is_sent_once(tmp_path: Path, axis: str, state: str) -> None:
    """A function of what was sent is the same if it does not mix what other devices have."""
    before, request = report_of(tmp_path, programs.SENT.replace("AXIS", axis))
    (found,) = (each for each in rewrites(before) if each.rule == "SS23")
    assert [edit.text for edit in found.fixes[0].edits] == ["scaled(plain)"]
    listed = [fix for each in tried(before, request, seconds=300).findings for fix in each.fixes]
    done = [fix.experiment for fix in listed if fix.edits == found.fixes[0].edits]
    if state != "tried":
        assert not [each for each in done if each is not None and each.helps]
        return
    (outcome,) = done
    assert outcome is not None
    assert outcome.values in ("equal", "close")
    assert outcome.before.bytes == 2 * (outcome.after.bytes or 0) == 2 * 64 * 32 * 16 * 4 // 8 * 7 // 8


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "line"),
    [
        (programs.SHARED, "w['out'], 'data', 'model')"),
        (programs.SCORED, "w['out'], NamedSharding(mesh, P('data', 'model')))"),
    ],
    ids=["helper", "constraint"],
)
def test_a_constraint_of_several_callers_is_changed_for_all(tmp_path: Path, text: str, line: str) -> None:
    before, request = report_of(tmp_path, text)
    found = first_fix(tried(before, request, seconds=300))
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert line in changed.decode()
    after, _ = report_of(tmp_path, changed.decode())
    hlo = [report.capture.stage("hlo") for report in (before, after)]
    sent = [counted(stage.source.text()) for stage in hlo if stage is not None]
    assert 10 * sent[1] < sent[0]


@pytest.mark.once
def test_rows_of_neighbours_are_priced(tmp_path: Path) -> None:
    """What windows reach into is what the compiled program sends; images by themselves need none of it."""
    before, _ = report_of(tmp_path, programs.IMAGES)
    hlo = before.capture.stage("hlo")
    assert hlo is not None
    priced = prices(before.program, None, 30)
    assert priced.today == counted(hlo.source.text()) == (2 + 4) * 16 * 8 * 32 * 4
    best = priced.candidates[0]
    assert [(each.name, each.spec) for each in best.changes] == [("x", "P('data')")]
    assert best.price == 0


@pytest.mark.once
@pytest.mark.parametrize("is_mapped", [False, True])
def test_what_a_constraint_gathers_is_cast_before(tmp_path: Path, *, is_mapped: bool) -> None:
    """Half of the gather's bytes: 7 of 8 parts of the weights, of 2 bytes an element instead of 4."""
    text = programs.GATHERED
    if is_mapped:
        text = text.replace("w = jax.lax.with_sharding_constraint(w, S())", "wide = jax.lax.with_sharding_constraint")
        text = text.replace("return w.astype", "return jax.lax.with_sharding_constraint(w, S()).astype")
    before, request = report_of(tmp_path, text)
    found = next(each for each in tried(before, request, seconds=300).findings if each.rule == "SS10")
    done = found.fixes[0].experiment
    assert done is not None
    assert (done.before.bytes or 0) - (done.after.bytes or 0) == 256 * 512 * 2 * 7 // 8
    assert done.values in ("equal", "close")
    if not is_mapped:
        other = text.replace("return w.astype(jnp.bfloat16)", "return w.astype(jnp.bfloat16) + jnp.sum(w)")
        assert not [each for each in rewrites(report_of(tmp_path, other)[0]) if each.rule == "SS10"]


@pytest.mark.once
def test_settings_of_specs_are_changed(tmp_path: Path) -> None:
    """The axis that splits nothing splits the batch: a device has half of the products."""
    before, found, done = first_experiment(tmp_path, programs.SETTINGS)
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    assert "batch_axes: tuple = ('data', 'model')" in changed.decode()
    assert ((done.before.flops or 0), done.values in ("equal", "close")) == (2 * (done.after.flops or 1), True)


@pytest.mark.once
def test_axes_that_an_operand_has_are_added_to_the_result(tmp_path: Path) -> None:
    """To both results at once: attention needs its operands alike."""
    before, found, done = first_experiment(tmp_path, programs.EXPLICIT_HEADS)
    assert len(found.fixes[0].edits) == 2
    assert {edit.text for edit in found.fixes[0].edits} == {"P('data', None, 'model', None)"}
    assert ((done.before.flops or 0) / (done.after.flops or 1), done.values in ("equal", "close")) == (2, True)
    after, _ = report_of(tmp_path, (next(iter((edited(before.program, found.fixes[0].edits) or {}).values()))).decode())
    hlo = [report.capture.stage("hlo") for report in (before, after)]
    sent = [counted(stage.source.text()) for stage in hlo if stage is not None]
    assert sent == [done.before.bytes, done.after.bytes]


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "across"),
    [
        (programs.FFTS, programs.FFTS.replace("axes=(1, 2)", "axes=(0, 1)")),
        (programs.LARGEST, programs.LARGEST.replace("axis=-1), 2)", "axis=-1).T, 2)")),
    ],
    ids=["transform", "largest"],
)
def test_a_call_along_other_dimensions_needs_nothing(tmp_path: Path, text: str, across: str) -> None:
    """In shard_maps: the compiled program has no collective. Along the sharded dimension there is no such edit."""
    before, found, done = first_experiment(tmp_path, text)
    assert found.rule == "SS15"
    assert (done.before.bytes > 0, done.after.bytes, done.values) == (True, 0, "equal")
    (changed,) = (edited(before.program, found.fixes[0].edits) or {}).values()
    after, _ = report_of(tmp_path, changed.decode())
    hlo = after.capture.stage("hlo")
    assert hlo is not None
    assert counted(hlo.source.text()) == 0
    other, _ = report_of(tmp_path, across)
    assert {fix.edits for each in other.findings for fix in each.fixes if each.rule == "SS15"} == {()}


def test_a_difference_that_a_rounding_makes_as_well_is_none() -> None:
    """A result may move 16 times as far as with rounded arguments; and up to a hundredth as far as another one does."""

    def run(*norms: float) -> Execution:
        return Execution(
            tuple(OutputSummary(f"[{n}]", "f32[8]", None, digest=str(norm), projections=(norm, 0, 0))
                  for n, norm in enumerate(norms))
        )  # fmt: skip

    before, after, far = run(1.0, 1.0), run(1.0, 1.004), run(1.0, 1.02)
    assert compared(before, after).values == "differ"
    assert compared(before, after, nudged=lambda: run(1.0, 1.0001)).values == "differ"
    assert compared(before, after, nudged=lambda: run(1.0, 1.0003)).values == "close"
    assert compared(before, after, nudged=lambda: run(1.0003, 1.0)).values == "close"
    assert compared(before, far, nudged=lambda: run(1.009, 1.0)).values == "differ"
    assert compared(before, far, nudged=lambda: run(1.5, 1.0)).values == "differ"
    assert compared(before, far, nudged=lambda: run(1.0, 1.5)).values == "close"
