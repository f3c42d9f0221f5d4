"""What was compiled for the devices that are there."""

from __future__ import annotations

from typing import Any


class Compiled:
    """A `jax.stages.Compiled`, asked for no more than is known of every executable."""

    def __init__(self, stages: Any) -> None:
        self.stages = stages

    @property
    def devices(self) -> list[Any]:
        """In the order of its partitions."""
        return list(self.stages.runtime_executable().local_devices())

    def as_text(self) -> str:
        """The optimized HLO."""
        return str(self.stages.as_text())

    def memory_analysis(self) -> Any:
        """Sizes, in bytes per device."""
        return self.stages.memory_analysis()
