"""The Report, and the values that it consists of."""

from .causes import CollectiveCause, Conflict, Effect, ExplainedStep, MovedDimension, Side, Why
from .collectives import Collective, CollectivePart, Kind, Origin, Pass, UncountedCommunication
from .explanations import Explanation, PlacedMessage, StoryStep
from .findings import (
    SEVERITIES,
    Certainty,
    Edit,
    Finding,
    FindingPlace,
    Fix,
    Severity,
    Suppressed,
    Suppression,
    Trial,
)
from .memory import LiveValue, PeakMemory
from .position import Confidence, SourcePosition, file_and_line
from .report import Report, StageSummary
from .shardings import (
    AxisOrigin,
    BoundaryOrigin,
    ConstraintOrigin,
    Role,
    ShardedValue,
    ShardMapOrigin,
    ValueDimension,
)
from .values import AxisEntry, Divergence, ProbedValue, VariableVariance

__all__ = [
    "SEVERITIES",
    "AxisEntry",
    "AxisOrigin",
    "BoundaryOrigin",
    "Certainty",
    "Collective",
    "CollectiveCause",
    "CollectivePart",
    "Confidence",
    "Conflict",
    "ConstraintOrigin",
    "Divergence",
    "Edit",
    "Effect",
    "ExplainedStep",
    "Explanation",
    "Finding",
    "FindingPlace",
    "Fix",
    "Kind",
    "LiveValue",
    "MovedDimension",
    "Origin",
    "Pass",
    "PeakMemory",
    "PlacedMessage",
    "ProbedValue",
    "Report",
    "Role",
    "Severity",
    "ShardMapOrigin",
    "ShardedValue",
    "Side",
    "SourcePosition",
    "StageSummary",
    "StoryStep",
    "Suppressed",
    "Suppression",
    "Trial",
    "UncountedCommunication",
    "ValueDimension",
    "VariableVariance",
    "Why",
    "file_and_line",
]
