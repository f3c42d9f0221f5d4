"""The Report, and the values that it consists of."""

from .collectives import REQUESTED, WRITTEN, Collective, CollectivePart, Kind, Origin, Pass, UncountedCommunication
from .communication import Strategy, StrategyTotal
from .findings import (
    SEVERITIES,
    Certainty,
    ComparedBy,
    Edit,
    Elsewhere,
    Experiment,
    Explanation,
    Finding,
    FindingPlace,
    Fix,
    Measured,
    PlacedMessage,
    Severity,
    State,
    StoryStep,
    Suppressed,
    Suppression,
    Values,
)
from .position import Confidence, SourcePosition, file_and_line
from .report import Report, Rule
from .shardings import (
    AxisOrigin,
    BoundaryOrigin,
    CollectiveCause,
    Conflict,
    ConstraintOrigin,
    Effect,
    ExplainedStep,
    MovedDimension,
    NamedOperation,
    NodeAxis,
    PropagationSteps,
    Role,
    ShardedValue,
    ShardMapOrigin,
    Side,
    ValueDimension,
    ValueName,
    Why,
)
from .stage_summary import StageSummary
from .values import AxisEntry, Divergence, HostTransfer, LiveValue, PeakMemory, ProbedValue, VariableVariance
