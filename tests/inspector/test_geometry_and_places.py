"""Small rules whose results can be had otherwise: from Python's own parser, by looking at all pairs, by counting."""

from __future__ import annotations

import ast
import itertools
import math
import os
import textwrap
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardscope.inspector.capture.model import Stage
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.catalog.spellings import KIND_OF, functions_of, primitives_of, similar_names
from shardscope.inspector.check.budget import broken, parse_budget
from shardscope.inspector.collectives.stage import collectives_of
from shardscope.inspector.correspondence.collectives import counterparts
from shardscope.inspector.cost.peak_memory import part_of
from shardscope.inspector.diff.matching import match
from shardscope.inspector.findings.fixes.edits import extent, keyword_changes
from shardscope.inspector.findings.rule import MAX_MESSAGE_CHARACTERS, finding
from shardscope.inspector.findings.rules import RULES
from shardscope.inspector.ir.meshes import partitions_of
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.html.mesh import _places
from shardscope.inspector.report import Finding, Report, SourcePosition
from shardscope.inspector.report.changes import CollectiveSignature, Fingerprint, Operand, Place, Transfer
from shardscope.inspector.report.places import StagePlace
from shardscope.inspector.report.policy import Policy
from shardscope.inspector.selection.selection import linked
from shardscope.parsers import parse
from shardscope.parsers.errors import ParseError
from shardscope.parsers.sharding_syntax.mesh import MAX_DEVICES, AxisRef, MeshSyntax
from shardscope.parsers.source import Frame, Source, Span

from tests.sweeps import examples

SIDE, GAP = 20, 4


@settings(max_examples=examples(20, 60), deadline=None)
@given(st.lists(st.integers(1, 5), min_size=0, max_size=4))
def test_squares_of_a_mesh(sizes: list[int]) -> None:
    """None lies on another; neighbours along the last two axes are side by side, and no place is wasted between."""
    mesh = MeshSyntax(tuple((f"a{number}", size) for number, size in enumerate(sizes)))
    places = _places(mesh, SIDE, GAP)
    assert sorted(places) == list(range(mesh.size))
    for (x, y), (other_x, other_y) in itertools.combinations(places.values(), 2):
        assert abs(x - other_x) >= SIDE + GAP or abs(y - other_y) >= SIDE + GAP
    columns = sizes[-1] if sizes else 1
    of = list(partitions_of(mesh))
    for position in range(mesh.size - 1):
        here, after = places[of[position]], places[of[position + 1]]
        if (position + 1) % columns:
            assert (after[0] - here[0], after[1] - here[1]) == (SIDE + GAP, 0)
    if len(sizes) > 1:
        for position in range(mesh.size - columns):
            if (position // columns + 1) % sizes[-2]:
                here, below = places[of[position]], places[of[position + columns]]
                assert (below[0] - here[0], below[1] - here[1]) == (0, SIDE + GAP)
    blocks = math.prod(sizes[:-2])
    assert len({y for _, y in places.values()}) <= math.ceil(math.sqrt(blocks)) * (sizes[-2] if len(sizes) > 1 else 1)


EXPRESSIONS = """
first = f(x,
    g(y)[1:2],
      "ä" + b"c".decode())
second = [lax.psum(
    x * 2, ("x",
            "y"))
    for x in y]
third = a if (b
    and c) else -d ** 2
"""


def test_extents_are_those_of_the_text() -> None:
    """Columns count bytes, as in Python's own nodes: what is between them is what Python says the node's text is."""
    lines = EXPRESSIONS.encode().splitlines(keepends=True)
    nodes = [node for node in ast.walk(ast.parse(EXPRESSIONS)) if isinstance(node, ast.expr)]
    assert len(nodes) > 30
    for node in nodes:
        line, column, last, end = extent(node)
        between = b"".join(lines[line - 1 : last])
        text = between[column : len(between) - len(lines[last - 1]) + end]
        assert text.decode() == ast.get_source_segment(EXPRESSIONS, node)


@pytest.mark.parametrize(("partitions", "replicas"), [(4, 2), (2, 8), (1, 4), (4, 1), (1, 1), (MAX_DEVICES, 2)])
def test_devices_of_a_text(partitions: int, replicas: int) -> None:
    """As many as both numbers allow; one, as if it said nothing, where no program has so many."""
    mlir = f"""module @jit_f attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : i32}} {{
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {{
    return %arg0 : tensor<4xf32>
  }}
}}
"""  # noqa: E501 (as MLIR writes it)
    hlo = f"""HloModule jit_f, entry_computation_layout={{(f32[4]{{0}})->f32[4]{{0}}}}, replica_count={replicas}, \
num_partitions={partitions}

ENTRY %main (p: f32[4]) -> f32[4] {{
  ROOT %p = f32[4]{{0}} parameter(0)
}}
"""
    for dialect, text in (("mlir", mlir), ("hlo", hlo)):
        module = ParsedStage(Stage("stablehlo", dialect, Source("t", text.encode()))).module  # type: ignore[arg-type]
        assert module is not None
        assert module.devices == (partitions * replicas if partitions * replicas <= MAX_DEVICES else 1)


def test_who_a_text_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "text.hlo"
    path.write_text("neither\n")
    names = []
    for arguments in ((path,), (str(path),), (path, "own"), (b"neither\n",), (b"neither\n", "own")):
        with pytest.raises(ParseError) as raised:
            parse(*arguments)
        names.append(raised.value.problem.source.name)
    assert names == [str(path), str(path), "own", "text", "own"]


def transfer(kind: str, bytes_out: int, line: str, *operands: Operand) -> Transfer:
    work = CollectiveSignature(kind, "sum", (), ("f32",), 64, bytes_out, 48, 1, is_async=False)  # type: ignore[arg-type]
    return Transfer(work, Place((("f", line),), "", "forward"), "unknown", "", "", operands=operands)


def test_what_is_over_a_budget_of_bytes_is_listed_by_size() -> None:
    """By what all of its kind send together, the most first."""
    one = transfer("all-reduce", 64, "psum(x)")
    sizes = [(10, 3), (20, 1), (7, 5), (1000, 0), (16, 2)]
    work = [(replace(one, work=replace(one.work, wire_bytes=size)), count) for size, count in sizes]
    [over] = broken([parse_budget("wire bytes <= 1 B")], Fingerprint("", "hlo", tuple(work), ()))
    listed = [(each.work.wire_bytes or 0) * count for each, count in over.transfers]
    assert listed == sorted((size * count for size, count in sizes), reverse=True)
    assert over.found.startswith(f"{sum(listed)} B ")


@pytest.mark.parametrize(
    ("index", "part"),
    [("", None), ("0", 0), ("1", 1), ("1, 0", (1, 0)), ("1,1", (1, 1)), ("2", None), ("1, 2", None), ("0, 0", None)],
)
def test_parts_of_a_type(index: str, part: int | tuple[int, int] | None) -> None:
    """As Python takes them out of tuples; all of it where there is no such part."""
    text = "(f32[2], (s32[], pred[3]))"
    whole = parse(f"HloModule m\n\nENTRY %e () -> {text} {{\n  ROOT %p = {text} parameter(0)\n}}\n".encode())
    instruction = whole.computations[0].instructions[0]  # type: ignore[union-attr]
    names = ("f32[2]", ("s32[]", "pred[3]"))
    expected = text if part is None else names[part] if isinstance(part, int) else names[1][part[1]]
    assert str(part_of(instruction, index)) == str(expected).replace("'", "")


def test_names_that_are_misspelled() -> None:
    """At most three are proposed, with the one that was meant among them."""
    names = [name for kind in KIND_OF for name in (kind.replace("-", "_"), *primitives_of(kind))]
    counts = set()
    for name in names:
        for number in range(0, len(name), 4):
            proposed = similar_names(name[:number] + name[number + 1 :])
            counts.add(len(proposed))
            assert name in proposed or len(proposed) == 3 or len(name) < 6, (name, proposed)
    assert max(counts) == 3


def test_lines_of_the_script_itself_need_no_name() -> None:
    """A file is named unless it is the script, whose path may be written in full or from the folder it was run in."""
    here = os.path.abspath("step.py")
    for file, script, own in (
        ("step.py", "step.py", True),
        (here, "step.py", True),
        ("step.py", here, True),
        ("./step.py", here, True),
        (here, "other/step.py", False),
        ("/elsewhere/step.py", here, False),
        ("model.py", "step.py", False),
        ("model.py", here, False),
        (here, None, False),
    ):
        shown = SourcePosition.exact((Frame(file, "f", 7),)).text(script)
        assert shown == ("line 7" if own else f"{os.path.basename(file)}:7"), (file, script)


def test_axes_are_read_as_they_are_written() -> None:
    for axis in (AxisRef("x"), AxisRef("x", (2, 4)), AxisRef("a b", (1, 16)), AxisRef("x:(", None), AxisRef("(1)2")):
        assert AxisRef.spelled(str(axis)) == axis


@pytest.mark.parametrize("text", [b"", b"?", b"no program", b"one\ntwo"])
def test_what_is_no_program_is_refused_where_it_begins(text: bytes) -> None:
    with pytest.raises(ParseError) as error:
        parse(text)
    assert error.value.problem.span == Span(0, max(text.find(b"\n"), 1))


def test_the_same_operand_in_another_collective_elsewhere() -> None:
    """What goes in is the same: an all-reduce that has become a reduce-scatter, among others that came and went."""
    for sizes in (), (16,):
        one = transfer("all-reduce", 64, "total = psum(x)", *(Operand("f32", size, size) for size in sizes))
        other = transfer("reduce-scatter", 16, "part = f(x)", *(Operand("f32", size, size // 4) for size in sizes))
        _, changed = match(((one, 1),), ((other, 1),))
        assert [(each.befores, each.afters) for each in changed] == [(((one, 1),), ((other, 1),))]


EQUAL = """
    import jax, jax.numpy as jnp
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    def fn(x):
        a = jax.lax.psum(x + 1, "x")
        b = jax.lax.pmax(x + 2, "x")
        c = jax.lax.pmean(x + 3, "x")
        return a, b, c, jax.lax.psum(x + 4, "x") / 4
    @jax.shard_map(mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    def never_called(x):
        return x
    inputs = (jnp.arange(8.0),)
"""


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Report:
    script = tmp_path_factory.mktemp("equal") / "script.py"
    script.write_text(textwrap.dedent(EQUAL))
    return inspect(last_capture(Request(f"{script}:fn", live=False)))


@pytest.fixture(scope="module")
def reductions(equal: Report) -> tuple[Finding, ...]:
    """What is found about reductions of equal values, by their lines."""
    return tuple(sorted((each for each in equal.findings if each.rule == "SS04"), key=line_of))


def test_only_functions_that_ran_are_changed(equal: Report) -> None:
    lines = textwrap.dedent(EQUAL).splitlines()
    assert equal.script is not None
    [[changed]] = keyword_changes(equal.program, [equal.script], ["check_vma"], "True")
    assert (changed.text, lines[changed.end_line]) == ("True", "def fn(x):")
    assert not list(keyword_changes(equal.program, [equal.script], ["check_vma"], "False"))


def line_of(found: Finding) -> int:
    frame = found.place.source.frame
    assert frame is not None
    return frame.line


def test_what_a_reduction_of_equal_values_gives(reductions: tuple[Finding, ...]) -> None:
    """Four devices that hold 1: what the message says is what arithmetic gives."""
    words = {4.0: "its sum is 4 times the value", 1.0: "reducing it changes nothing"}
    results = sum([1.0] * 4), max([1.0] * 4), sum([1.0] * 4) / 4
    assert len(reductions) == 4
    for found, result in zip(reductions, results, strict=False):
        assert found.message.endswith(words[result]), found.message
    assert reductions[3].message.endswith("its sum divided by 4 is the value itself")


@pytest.mark.parametrize(
    ("file", "pattern", "matches"),
    [
        ("/home/me/tree/models/a.py", "models/*.py", True),
        ("/home/me/tree/models/a.py", "a.py", True),
        ("/home/me/tree/models/a.py", "/home/me/*", False),
        ("/home/me/other/a.py", "../other/a.py", True),
        ("models/./a.py", "models/a.py", True),
        ("models/a.py", "../*", False),
        ("/home/me/tree/b/a.py", "a/*", False),
    ],
)
def test_files_of_a_policy(file: str, pattern: str, matches: bool, reductions: tuple[Finding, ...]) -> None:
    """Patterns are about paths from the folder of the settings, and about names of files alone."""
    found = reductions[0]
    source = replace(found.place.source, stack=(Frame(file, "f", 3),))
    found = replace(found, place=replace(found.place, source=source))
    rules = frozenset((found.rule,))
    policy = Policy(elsewhere=(("nothing", rules), (pattern, frozenset())), root="/home/me/tree")
    assert policy.pattern_against(found, "script.py") is None
    policy = replace(policy, elsewhere=(("nothing", rules), (pattern, rules)))
    assert policy.pattern_against(found, "script.py") == (pattern if matches else None)
    relative = os.path.relpath(file, "/home/me/tree") if os.path.isabs(file) else os.path.normpath(file)
    assert matches == (fnmatch(relative, pattern) or fnmatch(Path(file).name, pattern))
    assert replace(policy, root="").pattern_against(found, "script.py") == (
        pattern if fnmatch(os.path.normpath(file), pattern) or fnmatch(Path(file).name, pattern) else None
    )


def test_what_primitives_are_lowered_to() -> None:
    """Each of them is of one kind: those that JAX's manual names so, among others."""
    documented = {
        "psum": "all-reduce", "pmax": "all-reduce", "pmin": "all-reduce", "all_gather": "all-gather",
        "reduce_scatter": "reduce-scatter", "all_to_all": "all-to-all", "ppermute": "collective-permute",
    }  # fmt: skip
    kinds: Any = tuple(KIND_OF)  # a type that is made of them
    of = {kind: primitives_of(kind) for kind in kinds}
    for primitive, kind in documented.items():
        assert [one for one, names in of.items() if primitive in names] == [kind]
    assert sorted(primitives_of(*kinds)) == sorted(name for names in of.values() for name in names)
    assert primitives_of() == ()
    functions = {kind: functions_of(kind) for kind in kinds}
    for function, kind in (documented | {"psum_scatter": "reduce-scatter", "pmean": "all-reduce"}).items():
        if hasattr(jax.lax, function):
            assert [one for one, names in functions.items() if function in names] == [kind], function
    assert set(functions_of()) == set(functions_of(*kinds)) == set().union(*functions.values())


@pytest.mark.parametrize("length", [1, 98, 99, 100, 101, 150])
def test_messages_are_cut_off_where_they_are_too_long(length: int, reductions: tuple[Finding, ...]) -> None:
    message = "".join(chr(ord("a") + number % 26) for number in range(length))
    shown = finding(RULES[0], reductions[0].place, message, confidence="likely").message
    assert len(shown) == min(length, MAX_MESSAGE_CHARACTERS)
    assert shown == message or (length > MAX_MESSAGE_CHARACTERS and message.startswith(shown.removesuffix("…")))


SCRIPT = """
    import jax, jax.numpy as jnp
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    def fn(x):
        for number in range(4):
            x = jnp.tanh(jax.lax.psum(x, "x") * (number + 1.0))
        return x
    inputs = (jnp.arange(8.0),)
"""


def test_counterparts_of_a_line_that_runs_four_times(tmp_path: Path) -> None:
    """Each needs what the one before it gives, so that all texts have them in one order."""
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    report = inspect(last_capture(Request(f"{tmp_path}/script.py:fn", live=False)))
    written, compiled = report.program.stage("stablehlo"), report.program.stage("hlo")
    assert written is not None
    assert compiled is not None
    own = sorted((c for c in report.collectives if c.stage == "hlo"), key=lambda c: c.span.start)
    assert len(own) == 4
    there = collectives_of(report.program, written)
    found = [counterparts(compiled, each, written, there).found for each in own]
    assert [len(each) for each in found] == [1] * 4
    assert [each.span.start for (each,) in found] == sorted({each.span.start for (each,) in found})
    for each, (other,) in zip(own, found, strict=True):
        back = counterparts(written, other, compiled, collectives_of(report.program, compiled))
        assert [one.span for one in back.found] == [each.span]
        inside = range(each.span.start, each.span.end)
        for offset in (inside[0], inside[len(inside) // 2], inside[-1]):
            place = linked(report, StagePlace("hlo", offset), written)
            assert place.stack == each.source.stack
            assert other.span in place.spans
