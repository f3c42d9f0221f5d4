"""Programs that a script compiles beside the one that is captured: each once for all captures of one process.

JAX asks its persistent compilation cache, whose place is taken: `jax._src.compilation_cache._cache`, and
`is_cache_used`, which would remember what it found first (JAX 0.7 to 0.12). The user's own cache is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from .patches import change_after_import

IS_ON = "jax_enable_compilation_cache"


def watch_imports(folder: str) -> None:
    """Have programs kept in a folder, and taken from there, from the moment at which the script imports JAX."""

    def change(module: ModuleType) -> None:
        if all(hasattr(module, name) for name in ("_cache", "is_cache_used", "config")):
            config: Any = module.config
            module.__dict__.update(_cache=_Folder(folder), is_cache_used=lambda backend: getattr(config.config, IS_ON))
            config.config.update(IS_ON, True)

    change_after_import({"jax._src.compilation_cache": change})


class _Folder:
    """A cache, as JAX uses one: a file for each program."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def get(self, key: str) -> bytes | None:
        with suppress(OSError):
            return (self._path / key).read_bytes()
        return None

    def put(self, key: str, value: bytes) -> None:
        part = self._path / f"{key}.{os.getpid()}"
        with suppress(OSError):
            part.write_bytes(value)
            part.rename(self._path / key)  # whole, for others that look


@contextmanager
def compiled_anew() -> Iterator[None]:
    """Have no program taken from a cache: XLA writes its stages only as it compiles."""
    import jax

    is_on = getattr(jax.config, IS_ON)
    jax.config.update(IS_ON, False)
    try:
        yield
    finally:
        jax.config.update(IS_ON, is_on)
