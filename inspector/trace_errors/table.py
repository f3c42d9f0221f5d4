"""The table of errors: patterns of messages, and what explains them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..capture.model import Capture, Failure
from ..ir.program import Program
from ..report import Explanation, Report
from . import (
    carries,
    explicit,
    explicit_bodies,
    function_rules,
    mesh_sizes,
    modes,
    operations,
    partitioning,
    placement,
    renamed,
    script_specs,
    sizes,
    specs,
    unreduced,
)
from .failed import Failed
from .problem import Candidate, Problem, Reason

_Explain = Callable[[Failed, re.Match[str]], Explanation | None]

_ExplainProblem = Callable[[Problem, re.Match[str]], Reason | None]

ROWS: tuple[tuple[re.Pattern[str], _ExplainProblem], ...] = (
    (sizes.INDIVISIBLE, sizes.explain),
    (sizes.IN_SPECS, sizes.explain),
    (sizes.SCATTERED, sizes.explain_scattered),
    (mesh_sizes.MESH, mesh_sizes.explain_mesh),
    (mesh_sizes.NAMES, mesh_sizes.explain_names),
    (script_specs.RANK, script_specs.explain_rank),
    (script_specs.TOO_LONG, script_specs.explain_rank),
    (script_specs.TWICE, script_specs.explain_twice),
    (script_specs.UNKNOWN, script_specs.explain_unknown),
    (script_specs.NOT_MANUAL, script_specs.explain_unknown),
    (script_specs.NO_MESH, script_specs.explain_no_mesh),
    (script_specs.NONE, script_specs.explain_none),
    (script_specs.TREE, script_specs.explain_length),
    (script_specs.TREE_LENGTH, script_specs.explain_length),
    (script_specs.TREE_KEYS, script_specs.explain_keys),
    (script_specs.TREE_KIND, script_specs.explain_kind),
    (placement.DEVICES, placement.explain_devices),
    (placement.TWICE, placement.explain_donated_twice),
    (placement.DELETED, placement.explain_deleted),
    (placement.REQUIRED, placement.explain_required),
    (function_rules.CLOSED, function_rules.explain_closed_over),
    (modes.NOT_EXPLICIT, modes.explain_not_explicit),
    (modes.ASSERTED, modes.explain_asserted),
    (modes.MANUAL, modes.explain_manual),
    (modes.UNBOUND, modes.explain_unbound),
    (modes.MAPPED, modes.explain_mapped),
    (function_rules.BACKWARD, function_rules.explain_backward),
    (function_rules.MAPPED_AXIS, function_rules.explain_mapped_axis),
    (renamed.MISSING, renamed.explain_missing),
    (partitioning.INVALID, partitioning.explain_invalid),
)
"""Patterns of messages, and what explains them; those of errors in tracing alone are below."""

EXPLAINERS: tuple[tuple[re.Pattern[str], _Explain], ...] = (
    (specs.LACKS_AXES, specs.explain_lacking_axes),
    (carries.CARRY, carries.explain_carry),
    (carries.BRANCHES, carries.explain_branches),
    (operations.MIXED, operations.explain_mixed),
    (operations.CAST, operations.explain_cast),
    (operations.UNBOUND, operations.explain_unbound),
    (specs.TOO_LONG, specs.explain_too_long),
    (operations.AMBIGUOUS, operations.explain_explicit),
    (explicit.ALIKE, explicit.explain_alike),
    (explicit.ILLEGAL, explicit.explain_illegal),
    (explicit.CONTRACTED, explicit.explain_contracted),
    (explicit.LOOKUP, explicit.explain_lookup),
    (explicit.RESHAPE, explicit.explain_reshape),
    (explicit.UPDATE, explicit.explain_update),
    (explicit.SCATTER, explicit.explain_scatter),
    (explicit.CONSTRAINT, explicit.explain_constraint),
    (unreduced.IN_SPECS, unreduced.explain_in_specs),
    (explicit_bodies.CARRY, explicit_bodies.explain_carry),
    (explicit_bodies.BRANCHES, explicit_bodies.explain_branches),
    (explicit_bodies.CONVOLUTION, explicit_bodies.explain_convolution),
    (explicit_bodies.MESHES, explicit_bodies.explain_meshes),
    (unreduced.WHOLE, unreduced.explain_whole),
    (unreduced.OTHER_AXES, unreduced.explain_other_axes),
    (unreduced.UNLIKE, unreduced.explain_unlike),
    (unreduced.ONE_SIDE, unreduced.explain_one_side),
    (unreduced.PRODUCT, unreduced.explain_products),
)
"""Patterns of JAX's messages about types in tracing, and the explainers for them."""


def explainers(said: str) -> Iterator[tuple[_Explain, re.Match[str]]]:
    """Yield the explainers that know a message, in order, with what they read in it."""
    matches = ((explain, pattern.search(said)) for pattern, explain in EXPLAINERS)
    return ((explain, match) for explain, match in matches if match is not None)


def reason_of(problem: Problem, unchecked: Callable[[], Report | None] = lambda: None) -> Reason | None:
    """Reason for which a run fails, by the first row that knows; None of an error that none knows."""
    for pattern, explain in ROWS:
        match = pattern.search(problem.said)
        reason = None if match is None else explain(problem, match)
        if reason is not None:
            return reason
    failed = _failed(problem, unchecked)
    for explainer, match in explainers(problem.said):
        found = explainer(failed, match)
        if found is not None:
            own = tuple(Candidate(fix.title, fix.edits) for fix in found.fixes)
            return Reason(found.title, "", found.steps, candidates=(*own, *modes.automatic(problem)))
    return None


def _failed(problem: Problem, unchecked: Callable[[], Report | None]) -> Failed:
    source = problem.source(problem.script)
    stack = tuple(problem.stack[number] for number in problem.own)
    failure = Failure("function", problem.said.partition("\n")[0], "trace", said=problem.said, stack=stack)
    axes = tuple(dict.fromkeys(name for mesh in problem.meshes() for name, _ in mesh.mesh))
    specs = {each.name: each.spec for each in reversed(problem.arguments) if each.spec is not None}
    return Failed(Program(Capture(script_text=source, failure=failure)), failure, unchecked, specs=specs, axes=axes)
