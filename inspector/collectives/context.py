"""Context of the analysis of one stage's collectives: what it needs besides the stage's own text."""

from __future__ import annotations

from msgspec import field

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.model import Device
from ..correspondence.partitioned import Partitioning, partitioning_of
from ..ir.derived import derived
from ..ir.program import Program
from ..ir.stage import ParsedStage
from .operations import Lowered


class AnalysisContext(Record, frozen=True):
    """Facts from the rest of the capture.

    `meshes` are the user's, over partition numbers; the first that explains a collective's groups names its axes.
    Empty groups stand for all `partitions`, 0 where no text declares them, whose `devices` are listed in their order
    unless they are fake or unknown. `partitioning` is None where the stages around the partitioner were not recorded.
    `differentiated` is whether any operation of the program belongs to a backward pass. `unpartitioned` and
    `partitioned` are the modules that go into the partitioner and come out of it. `is_on_cpu` is true of what is
    compiled for CPUs.
    """

    meshes: tuple[MeshSyntax, ...]
    partitions: int
    partitioning: Partitioning | None = None
    differentiated: bool = False
    devices: tuple[Device, ...] = ()
    lowered: Lowered = field(default_factory=Lowered)
    unpartitioned: ParsedStage | None = None
    partitioned: ParsedStage | None = None
    is_on_cpu: bool = False


@derived
def context_of(program: Program) -> AnalysisContext:
    """Return what the rest of a program contributes to the collectives of any of its stages."""
    before, after = program.stage("hlo-before"), program.stage("hlo-spmd")
    differentiated = any(map(_holds_transposed, program.stages))
    return AnalysisContext(
        program.meshes,
        program.declared_partitions,
        None if before is None or after is None else partitioning_of(after, before),
        differentiated,
        program.devices,
        Lowered(
            program.stage("stablehlo"),
            program.stage("jaxpr"),
            program.capture.equations,
            tuple(argument.path for argument in program.capture.arguments),
            tuple(output.path for output in program.capture.outputs),
            differentiated,
        ),
        before,
        after,
        program.capture.subject is not None and program.capture.subject.platform == "cpu",
    )


@derived
def _holds_transposed(stage: ParsedStage) -> bool:
    return b"transpose(jvp" in stage.source.data
