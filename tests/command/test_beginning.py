"""A text report begins before the function has run, and goes on where it stopped."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from shardscope.inspector.capture.model import Capture, Progress
from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.spawn import Cancellation, CaptureHandle
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.text import print_beginning, print_report
from shardscope.inspector.report import Edit, Experiment, Fix, Measured, Report
from shardscope.inspector.report.policy import Policy

from shardscope.commands import show
from shardscope.commands.job import job_of
from shardscope.configuration import Configuration, Found

SampleCapture = Callable[[str], Capture]

ROOT = Path(__file__).parent.parent.parent

WAITS = """
    import os, time
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

    def waiting(x):
        while not os.path.exists("go"):
            time.sleep(0.05)
        return x

    @jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)
    def fn(x):
        return jax.lax.psum(jax.pure_callback(waiting, jax.ShapeDtypeStruct(x.shape, x.dtype), x), "x")
    fn_inputs = (np.ones(8, np.float32),)
"""


@pytest.mark.once
@pytest.mark.cold
def test_collectives_are_there_while_the_function_runs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(WAITS))
    command = [sys.executable, "-m", "shardscope", "run", "script.py:fn", "--probe", "none", "--timeout", "100"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        beginning = ""
        while "all-reduce" not in beginning:
            line = process.stdout.readline()
            assert line, "it ended without its beginning, as the function waits for us"
            beginning += line
        (tmp_path / "go").touch()
        rest = process.stdout.read()
    assert process.returncode == 0
    assert " · ran " in rest


EDITED = """
    import jax, jax.numpy as jnp
    from functools import partial
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P())
    def fn(x):
        return jax.lax.{body}
    fn_inputs = (jnp.ones(8),)
"""


@pytest.mark.once
def test_what_is_saved_is_written_anew(tmp_path: Path) -> None:
    """With the name that Python has for what breaks it, and the line that says what changed."""
    script = tmp_path / "script.py"

    def save(body: str) -> None:
        script.write_text(textwrap.dedent(EDITED.format(body=body)))

    save('psum(x, "x")')
    command = [sys.executable, "-m", "shardscope", "--format", "text", "--no-live", "--watch", "script.py:fn"]
    with (
        (tmp_path / "out").open("w+") as out,
        subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr is not None
        try:
            while not (tmp_path / "out").read_text():
                assert process.poll() is None
                time.sleep(0.1)
            save('psum(x, "x"')
            said = [process.stderr.readline() for _ in range(2)]
            save('psam(x, "x")')
            said += [process.stderr.readline() for _ in range(2)]
            save('pmax(jax.lax.psum(x, "x") + x, "x")')
            said.append(process.stderr.readline())
        finally:
            process.terminate()
    line = textwrap.dedent(EDITED).splitlines().index("    return jax.lax.{body}") + 1
    failed = f"shardscope: script.py:{line}: "
    wanted = (f"{failed}SyntaxError: ", "shardscope: stale", f"{failed}AttributeError: ", "shardscope: stale")
    assert [each.startswith(text) for each, text in zip(said, wanted, strict=False)] == [True] * 4, said
    assert "+1 all-reduce" in said[4]
    assert process.returncode == 128 + signal.SIGTERM
    assert (tmp_path / "out").read_text().count("script.py:fn ·") == 2


@pytest.mark.once
def test_what_the_compiler_has_written_is_analyzed_while_it_goes_on(
    sample: SampleCapture, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = sample("fsdp_tp:grad")
    names = [stage.name for stage in whole.stages]
    assert names == ["jaxpr", "stablehlo", "sdy", "hlo-before", "hlo-spmd", "hlo"]
    compiling = [
        replace(whole, stages=whole.stages[:count], complete=False, progress=Progress("compile", 1.0))
        for count in (1, 2, 2, 3, 5, 6)
    ]
    seen: list[list[str]] = []

    def watched(program: Program, policy: Policy) -> Report:
        seen.append([stage.name for stage in program.stages])
        return inspect(program, policy)

    monkeypatch.setattr(show, "inspect", watched)
    request = Request("fsdp_tp.py:grad", live=False)
    begun = CaptureHandle(request, iter([*compiling, whole]), Cancellation())
    options = argparse.Namespace(
        select=None, ignore=None, strict=False, format="text", output=None, quiet=False, verify=False, save=None,
        details=(), fail_on=None, stage=None, try_for=None, watch=False,
    )  # fmt: skip
    assert show.one(begun, job_of(options, Found(Configuration()))) == 0
    assert seen == [names[:1], names[:2], names[:3], names[:5], names]
    assert "gradient sync" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["psum:psum", "missing_reduce_scatter:faulty", "unsound_invariance:faulty"])
def test_both_parts_are_the_whole(sample: SampleCapture, name: str) -> None:
    capture = sample(name)
    before = replace(capture, execution=None, probes=(), compared=(), collective_times=(), probed=None)
    begun, report = inspect(before), inspect(capture)
    whole, parts = StringIO(), StringIO()
    print_report(report, Console(file=whole, width=160))
    print_beginning(begun, Console(file=parts, width=160))
    print_report(report, Console(file=parts, width=160), begun=begun)
    if begun.findings == report.findings:
        assert parts.getvalue() == whole.getvalue()
    else:  # what the run has shown comes after it
        assert set(whole.getvalue().splitlines()) == set(parts.getvalue().splitlines())


def test_what_the_run_finds_is_all_that_follows(sample: SampleCapture) -> None:
    report = inspect(sample("unsound_invariance:faulty"))
    known = next(each for each in report.findings if each.severity != "info")
    found = replace(known, message="another one", severity="error")
    parts = StringIO()
    print_beginning(replace(report, findings=(known,)), Console(file=parts, width=160))
    begun = replace(report, findings=(known,))
    print_report(replace(report, findings=(found, known)), Console(file=parts, width=160), begun=begun)
    text = parts.getvalue()
    assert text.count(known.message) == text.count("another one") == 1


def test_a_finding_with_one_more_fix_that_does_not_help_is_printed_once(sample: SampleCapture) -> None:
    report, text = inspect(sample("unsound_invariance:faulty")), StringIO()
    known = next(each for each in report.findings if each.severity != "info")
    nothing = Measured()
    useless = Fix("another", (Edit("a.py", 1, 0, 1, 0, ""),), Experiment("not helping", "", nothing, nothing))
    begun = replace(report, findings=(known,))
    print_beginning(begun, Console(file=text, width=160))
    more = replace(known, fixes=(*known.fixes, useless), expected=(9, None))
    print_report(replace(report, findings=(more,)), Console(file=text, width=160), begun=begun)
    assert text.getvalue().count(known.message) == 1


def test_a_function_without_collectives_takes_three_lines(sample: SampleCapture) -> None:
    report, text = inspect(sample("constraint:open_columns")), StringIO()
    print_report(report, Console(file=text, width=160))
    subject, resources, state = text.getvalue().splitlines()
    assert "constraint.py:open_columns" in subject
    assert resources.startswith("No collectives. Compiled in")
    assert state.startswith("ok ")


@pytest.mark.parametrize("document", ["README.md", "docs/reading.md"])
def test_what_documents_show_is_what_is_printed(sample: SampleCapture, document: str) -> None:
    """But for times, and for what only a run finds out."""
    (shown,) = re.findall(r"\$ shardscope .*?(\w+:\w+).*\n(.*\n.*\n\n(?:.+\n)+)", (ROOT / document).read_text())
    capture = sample(shown[0])
    assert capture.subject is not None
    if f"jax {capture.subject.jax}\n" not in shown[1]:
        pytest.skip("it is of another JAX")
    written = StringIO()
    print_report(inspect(capture), Console(file=written, width=500))
    without_times = [re.sub(r"compiled in [^·]*| +$", "", text, flags=re.M) for text in (shown[1], written.getvalue())]
    assert without_times[1].startswith(without_times[0])
