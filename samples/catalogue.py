"""The samples, read without running them: this module imports neither jax nor a sample.

A sample is a file of this folder. Its docstring's first line is its summary. What can be inspected in it are the names
that have inputs: `loss` is listed when the module defines `loss_inputs`, by `def` or by assignment. They are listed in
the order in which their inputs stand in the file, and the first is the one that a bare `shardscope run NAME` means.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS = (
    ("collectives", ("psum", "psum_2d", "all_gather", "psum_scatter", "ppermute", "all_to_all")),
    ("matrix products", ("matmul_psum", "matmul_reduce_scatter", "matmul_all_gather")),
    (
        "networks",
        (
            "data_parallel",
            "fsdp",
            "tensor_parallel",
            "fsdp_tp",
            "pipeline",
            "megatron_mlp",
            "transformer",
            "moe",
            "ring_attention",
            "grad_accumulation",
        ),
    ),
    ("propagation", ("predict", "constraint", "auto_axis", "custom_partitioning", "block_matrices")),
    ("transposition", ("transposes",)),
    (
        "faults",
        (
            "missing_reduce_scatter",
            "gather_then_slice",
            "extra_backward_psum",
            "psum_of_invariant",
            "unsound_invariance",
            "full_rematerialization",
            "indivisible_constraint",
        ),
    ),
)
"""Every sample, by group, in the order of the list. Those in "faults" hold `faulty` and its twin, `repaired`."""

INPUTS = "_inputs"


@dataclass(frozen=True, slots=True)
class Sample:
    """A program to try shardscope on."""

    name: str
    """The name on the command line: the file's name without `.py`."""
    path: Path
    summary: str
    """The first line of the docstring."""
    functions: tuple[str, ...]
    """The names that have inputs, the default first; never empty."""
    group: str


def samples() -> tuple[Sample, ...]:
    """All samples, in the order in which `shardscope samples` lists them."""
    return tuple(_read(name, group) for group, names in GROUPS for name in names)


def _read(name: str, group: str) -> Sample:
    path = Path(__file__).with_name(f"{name}.py")
    module = ast.parse(path.read_bytes(), path.name)
    summary = (ast.get_docstring(module) or "").partition("\n")[0]
    functions = tuple(defined.removesuffix(INPUTS) for defined in _defined(module) if defined.endswith(INPUTS))
    return Sample(name, path, summary, functions, group)


def _defined(module: ast.Module) -> Iterator[str]:
    """The names that the module's own statements define, in order."""
    for statement in module.body:
        match statement:
            case ast.FunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
