"""Results of a row of the table of errors: why it fails, and the edits that may help, the likeliest first."""

from __future__ import annotations

from ...parsers.record import Record
from ..findings.fixes.edits import Edits
from ..report import SourcePosition, StoryStep


class Candidate(Record, frozen=True):
    """An edit to be tried. `is_other_data` where the script has other data with it, so that values cannot be equal.

    `is_spelling` where it says the same in other words: there is nothing to compare its values with. `is_last` where it
    gives up the mode of the mesh: it is tried if nothing else helps. `is_fewer` where it leaves devices idle,
    `is_split` where it says that some batches are sharded.
    """

    title: str
    edits: Edits = ()
    is_other_data: bool = False
    is_spelling: bool = False
    is_last: bool = False
    is_fewer: bool = False
    is_split: bool = False


class Reason(Record, frozen=True):
    """Reason for an error: in one sentence, the argument that it is about, and what may help.

    `where` is its place in the user's source, if it is not where the exception was raised.
    """

    title: str
    argument: str = ""
    steps: tuple[StoryStep, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    where: SourcePosition | None = None
