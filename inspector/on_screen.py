"""The analyses that screens ask for, from the folders that do them."""

from __future__ import annotations

from functools import partial

from .diff.targets import compare
from .experiments.edited import changes_by
from .experiments.suggest import suggested
from .pipeline import first_look, inspect
from .report.analyses import Analyses
from .report.policy import EVERYTHING, Policy


def analyses(policy: Policy = EVERYTHING) -> Analyses:
    """Return the analyses with the findings that a policy selects."""
    return Analyses(
        inspect=partial(inspect, policy=policy),
        first_look=first_look,
        compare=compare,
        changes_by=partial(changes_by, policy=policy),
        suggest=suggested,
    )
