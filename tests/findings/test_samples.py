"""What is found in the samples: each fault, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import jax
import pytest
from shardscope.inspector.findings.rules import ss23_implicit_communication
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.inspector.render.tables.captured import worst_problems

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture
from tests.findings.well_formed import assert_well_formed

EXPECTED = {
    "missing_reduce_scatter:faulty": [("SS01", "warning", "proved", ("x",), 23)],
    # What the CPU's compiler leaves an all-reduce, others make a reduce-scatter of.
    "block_matrices:reduce_scatter": [("SS01", "info", "likely", ("y",), 49)],
    "transformer:train_step": [("SS01", "info", "likely", ("data",), 43)],
    "gather_then_slice:faulty": [("SS02", "warning", "likely", ("x",), 19)],
    "ppermute:shift_open": [("SS19", "info", "proved", ("i",), 26)],  # its story: device 0 receives zeros
    # Its story as well: what `once` does after the loop, the types, or the partitioner, do in it.
    "grad_accumulation:each_time": [("SS07", "warning", "proved", ("batch",), 25)],
    "grad_accumulation:automatic": [("SS07", "warning", "proved", ("batch",), 25)],
    "psum_of_invariant:faulty": [("SS04", "error", "proved", ("batch",), 25)],
    "unsound_invariance:faulty": [("SS05", "error", "likely", ("x",), 23)],
    "extra_backward_psum:faulty": [
        ("SS03", "warning", "proved", ("model",), 24),  # of the last block; the first one's cotangents do differ
        ("SS03", "warning", "proved", ("data",), 25),  # of the mean over `data`, whose cotangent is one shared number
    ],
    # The inefficient transposes of JAX's document of 2023: the checked twins of both communicate nothing.
    "transposes:identity_unchecked": [("SS03", "warning", "proved", ("i",), 25)],
    "transposes:psum_to_invariant_unchecked": [("SS03", "warning", "proved", ("i",), 33)],
    "transposes:gather_to_invariant_unchecked": [("SS03", "warning", "proved", ("i",), 50)],
    "full_rematerialization:faulty": [("SS09", "warning", "proved", ("model",), 21)],
    "indivisible_constraint:faulty": [("SS11", "warning", "proved", ("x",), 21)],
}
"""Rule, severity, confidence, axes and line of each finding, what costs most first; all others are clean."""

if jax.__version_info__ < (
    0,
    7,
    2,
):  # the XLA of those does not say where it copies whole values, nor JAX what is backward
    del EXPECTED["full_rematerialization:faulty"]
    del EXPECTED["transposes:gather_to_invariant_unchecked"]
if jax.__version_info__ < (0, 10):  # whose jaxprs do not show that what this sums is shared
    del EXPECTED["transposes:psum_to_invariant_unchecked"]


STRATEGIES = ("fsdp_tp:forward", "fsdp_tp:grad", "megatron:forward", "data_parallel:grad")
"""Their implicit communication is what their shardings are for."""


@pytest.mark.skipif(jax.__version_info__ < (0, 7, 2), reason="XLA does not say it")
def test_what_a_finding_quotes_is_told_once(sample: SampleCapture) -> None:
    report = inspect(sample("full_rematerialization:faulty"))
    assert any("full rematerialization" in placed.message.text for placed in report.messages)
    assert worst_problems(report).rows == ()
    assert len(worst_problems(replace(report, findings=())).rows) == 1


@pytest.mark.skipif(jax.__version_info__ < (0, 7, 2), reason="XLA does not say it")
def test_an_argument_has_its_name_whether_the_compiler_says_it_or_not(sample: SampleCapture) -> None:
    capture = sample("full_rematerialization:faulty")
    messages = tuple(
        replace(each, text=re.sub(r', metadata={.*?}|op_name=".*?"', "", each.text)) for each in capture.messages
    )
    assert messages != capture.messages
    (said,), (unsaid,) = (
        [each for each in inspect(replace(capture, messages=some)).findings if each.rule == "SS09"]
        for some in (capture.messages, messages)
    )
    assert (said.subject, said.message) == (unsaid.subject, unsaid.message)
    assert said.subject == "x"


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_findings(sample: SampleCapture, function: str) -> None:
    found = []
    report = inspect(sample(function))
    for each in report.findings:
        if each.rule == "SS23":
            continue
        frame = each.place.source.frame
        axes = tuple(map(str, each.axes))
        found.append((each.rule, each.severity, each.confidence, axes, None if frame is None else frame.line))
    assert found == EXPECTED.get(function, [])
    assert_well_formed(report)
    inserted = {c.kind for c in report.collectives if c.stage == "hlo" and c.origin == "partitioner"}
    listed = list(ss23_implicit_communication.check(replace(report, lists_implicit=True)))
    assert bool(inserted) == bool(listed)
    news = {each.place.span for each in report.findings if each.rule == "SS23"}
    assert news <= {each.place.span for each in listed}
    assert not news or function not in STRATEGIES
