"""The platform of a capture is CPU, whatever the script chooses: the devices of a target are not there.

Scripts choose one in JAX_PLATFORMS or JAX_PLATFORM_NAME before they import JAX, in its configuration after that, or ask
for `jax.devices("gpu")`. Touches `jax._src.config`, whose `config` holds both, and `jax._src.xla_bridge.get_backend`
(0.7 to 0.12).
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ..channel import Channel
from ..failures import line_being_run
from ..patches import change_after_import

ABSENT = ("gpu", "cuda", "rocm", "tpu", "METAL")

OPTIONS = ("jax_platforms", "jax_platform_name")


class KeptPlatform:
    """Keeps JAX on CPU, and says so where the script wanted something else."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def watch_imports(self) -> None:
        """Have JAX changed from the moment at which the script imports it."""
        change_after_import({"jax._src.config": self._change, "jax._src.xla_bridge": self._change_backends})

    def _change_backends(self, module: ModuleType) -> None:
        truth = getattr(module, "get_backend", None)
        if truth is None:
            return

        @functools.wraps(truth)
        def kept(platform: Any = None) -> Any:
            if platform in ABSENT:
                text = f"devices of {platform!r} were asked for: fake CPU devices stand in for them"
                self._channel.tell("info", text, line_being_run())
                platform = "cpu"
            return truth(platform)

        module.get_backend = kept  # type: ignore[attr-defined]

    def _change(self, module: ModuleType) -> None:
        config: Any = getattr(module, "config", None)
        if not callable(getattr(type(config), "update", None)):
            return
        update = type(config).update

        @functools.wraps(update)
        def kept(self_: Any, name: str, value: Any) -> None:
            update(self_, name, self._cpu(name, value) if name in OPTIONS else value)

        type(config).update = kept
        for name in OPTIONS:
            if value := getattr(config, name, None):
                update(config, name, self._cpu(name, value))

    def _cpu(self, name: str, value: Any) -> Any:
        """The value that stands for one; other platforms than the CPU are left out."""
        platforms = [part.strip() for part in str(value or "").split(",") if part.strip()]
        if not platforms or platforms[0] == "cpu":
            return value
        text = f"{name} = {value!r} of the script was kept at 'cpu': fake CPU devices stand in for all others"
        self._channel.tell("info", text, line_being_run())
        return "cpu"
