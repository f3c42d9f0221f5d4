"""What an analysis of one stage's collectives has to know beside the stage's own text."""

from __future__ import annotations

from dataclasses import dataclass

from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.model import Device
from ..ir.stage import ParsedStage
from .origin import Partitioning


@dataclass(frozen=True, slots=True)
class AnalysisContext:
    """What the rest of the capture says.

    `meshes` are the user's, over partition numbers; the first that explains a collective's groups names its axes.
    `partitions` is how many there are, which empty groups stand for.
    `devices` are those of the partitions, in their order; none where they are fake, or nothing says where they are.
    `partitioning` is None where the stages around the partitioner were not recorded. `differentiated` is whether any
    operation of the program belongs to a backward pass. `jaxpr` and `stablehlo` are these stages, where there are any.
    """

    meshes: tuple[MeshSyntax, ...]
    partitions: int
    partitioning: Partitioning | None = None
    differentiated: bool = False
    devices: tuple[Device, ...] = ()
    jaxpr: ParsedStage | None = None
    stablehlo: ParsedStage | None = None
