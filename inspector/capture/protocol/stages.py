"""The stages that a compile goes through: what each is, and in which files of a dump it is found.

File names are XLA's (xla/service/dump.cc) and carry the passes before and after:
`module_0007.jit_f.0001.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt`; Shardy's own snapshots lie in
`shardy/module_0007.jit_f/02.after_propagation.mlir`; JAX writes others under `jax_dump_ir_to`.
"""

from __future__ import annotations

import re
from typing import Literal

from ...records import dataclass

Dialect = Literal["jaxpr", "mlir", "hlo"]


@dataclass(frozen=True, slots=True)
class StageKind:
    """A kind of stage: its language, its short `label`, and its `program` in words, the heading of its collectives.

    `title` is what stands above these. `files` is how the files that hold it are named in anyone's dump. Where a
    capture has XLA write it, `dumped` is how the file is named, and `around` the pass before or after which it is
    written.
    """

    dialect: Dialect
    label: str
    program: str = ""
    title: str = ""
    files: str = ""
    dumped: str = ""
    around: str = ""


STAGES: dict[str, StageKind] = {
    "jaxpr": StageKind("jaxpr", "jaxpr"),
    "stablehlo": StageKind(
        "mlir",
        "StableHLO",
        "StableHLO, as written",
        "Collectives in StableHLO, before partitioning",
        files=r"00\.input_module\.mlir|jax_ir\d+_.*_compile\.mlir",
    ),
    "sdy": StageKind(
        "mlir",
        "sdy",
        files=r"02\.after_propagation\.mlir|sdy_module_after_sdy_export\.mlir",
        dumped=r"02\.after_propagation\.mlir",
    ),
    "hlo-before": StageKind(
        "hlo",
        "pre-SPMD",
        "HLO before partitioning",
        "Collectives in HLO, before partitioning",
        files=r".*[._]before_(?:(?:tpu-)?spmd-partitioning|optimizations)\.(?:txt|hlo\.pb)",
        dumped=r".*\.before_(?:tpu-)?spmd-partitioning\.txt",
        around="shardy-xla",
    ),
    "hlo-spmd": StageKind(
        "hlo",
        "post-SPMD",
        "partitioned program",
        "Collectives after partitioning, before the backend compiles them",
        files=r".*\.after_(?:tpu-)?spmd-partitioning(?:\.before_.*)?\.(?:txt|hlo\.pb)",
        dumped=r".*\.after_(?:tpu-)?spmd-partitioning\.before_.*\.txt",
        around="spmd-partitioning",
    ),
    "hlo": StageKind(
        "hlo",
        "HLO",
        "compiled program",
        "Collectives in the compiled program",
        files=r".*\.(?:\w+_)?after_optimizations\.(?:txt|hlo\.pb)",
    ),
}
"""In the order of the compile.

`sdy` is after propagation, `hlo-before` goes into the partitioner, `hlo-spmd` comes out of it,
`hlo` is optimized and scheduled.
"""

PASSES = "|".join(kind.around for kind in STAGES.values() if kind.around)
"""The passes around which XLA is asked to write the program, as its regular expression."""


def stages_named(file: str) -> list[str]:
    """The stages that a file of a dump may hold, by its name."""
    return [name for name, kind in STAGES.items() if kind.files and re.fullmatch(kind.files, file)]
