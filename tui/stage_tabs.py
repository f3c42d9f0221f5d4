"""The stages as tabs, in the order in which a compile goes through them."""

from __future__ import annotations

from ..inspector.capture.model import STAGES, Capture
from .tab_strip import State, Tab

LABELS = {
    "jaxpr": "jaxpr",
    "stablehlo": "StableHLO",
    "sdy": "sdy",
    "hlo-before": "pre-SPMD",
    "hlo-spmd": "post-SPMD",
    "hlo": "HLO",
}
"""What the tabs are called: `sdy` is after propagation, and the HLO before and after the SPMD partitioner."""


def stage_tabs(capture: Capture) -> tuple[Tab, ...]:
    """All stages, whether they were reached or not."""
    missing: State = "failed" if capture.failure is not None else "waiting"
    return tuple(
        Tab(name, LABELS[name], str(number), state="ready" if capture.stage(name) is not None else missing)
        for number, name in enumerate(STAGES, 1)
    )
