"""Changes to what the script imports: to JAX, which it is to import first, and to files of its own.

What is changed of a program from outside touches two private parts of JAX (0.7 to 0.12):
`jax._src.shard_map._shard_map`, through which all spellings of shard_map go, and `jax._src.mesh.Mesh.__new__`.
"""

from __future__ import annotations

import functools
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import io
import itertools
import linecache
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NoReturn, TypeVar

from ..protocol.request import Overrides, UsageError


def change_after_import(changes: dict[str, Callable[[ModuleType], None]], *, even_failed: bool = False) -> None:
    """Have each of these modules changed by a function right after it has been executed, `even_failed` if it raised."""
    sys.meta_path.insert(0, _Finder(changes, even_failed))


Replacing = TypeVar("Replacing", bound=Callable[..., Any])


def instead_of(
    module: Any, name: str, missing: Callable[[], object] = lambda: None
) -> Callable[[Replacing], Replacing]:
    """Have a function called in the place of one of a module's, which is its first argument; else call `missing`."""

    def put(function: Replacing) -> Replacing:
        truth = getattr(module, name, None)
        if truth is None:
            missing()
        else:
            setattr(module, name, functools.wraps(truth)(functools.partial(function, truth)))
        return function

    return put


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as they are found anyway, and changes some right after they have been executed."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]], even_failed: bool) -> None:
        self._changes = changes
        self._even_failed = even_failed

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self._changes.pop(fullname, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_change(module: ModuleType) -> None:
                try:
                    execute(module)
                except BaseException:
                    if self._even_failed:
                        change(module)
                    raise
                change(module)

            spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def repeat_random_numbers() -> None:
    """Have Python and NumPy give the same numbers in each run where the script sets no seed: runs are compared.

    JAX's import draws some, which a fork of a warm server does not: the numbers go on behind it as if it drew none.
    """
    states: list[tuple[Callable[[Any], None], Any]] = []

    def restore(module: ModuleType) -> None:
        for set_state, state in states:
            set_state(state)

    change_after_import(
        {
            "random": lambda module: module.seed(0),
            "numpy.random": _seed,
            "jax.version": lambda module: states.extend(_random_states()),
            "jax": restore,
        }
    )
    if "random" in sys.modules:
        sys.modules["random"].seed(0)


def pause_collector() -> None:
    """Have Python look for cycles after the import of JAX only: it makes many objects that all stay."""
    before: list[int] = []

    def go_on(module: ModuleType) -> None:
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # with this they are old, and looked through when all are
        gc.set_threshold(*before or gc.get_threshold())

    def pause(module: ModuleType) -> None:
        before.extend(gc.get_threshold())
        gc.set_threshold(0)

    change_after_import({"jax.version": pause, "jax": go_on}, even_failed=True)


def _random_states() -> Iterator[tuple[Callable[[Any], None], Any]]:
    import random

    import numpy.random

    yield random.setstate, random.getstate()
    yield numpy.random.set_state, numpy.random.get_state()


def _seed(module: ModuleType) -> None:
    made, seeds = module.default_rng, itertools.count()
    module.seed(0)

    @functools.wraps(made)
    def default_rng(seed: object = None) -> Any:
        return made(next(seeds) if seed is None else seed)

    module.default_rng = default_rng  # type: ignore[attr-defined]


_TEXTS: dict[str, bytes] = {}
"""Replaced texts, by the real path of the file."""


def interpose(replaced: Iterable[Iterable[str]]) -> None:
    """Import these files from now on with the text of others: pairs of a file and of one with its text."""
    for file, text in replaced:
        path = os.path.realpath(file)
        _TEXTS[path] = Path(text).read_bytes()
    if _TEXTS:
        SourceFileLoader.get_code = _get_code  # type: ignore[method-assign, assignment]


def compile_with(compiler: Callable[[bytes, str], CodeType | None]) -> None:
    """Import files from now on with the code of a function of their text and path; None leaves them alone."""
    global _compiler
    _compiler = compiler
    SourceFileLoader.get_code = _get_code  # type: ignore[method-assign, assignment]


def text_of(file: str | Path) -> bytes:
    """Return the text of a file, or the text that replaces it."""
    text = _TEXTS.get(os.path.realpath(file)) if _TEXTS else None
    return Path(file).read_bytes() if text is None else text


_original = SourceFileLoader.get_code
_compiler: Callable[[bytes, str], CodeType | None] = lambda text, path: None  # noqa: E731


def _get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
    path = self.get_filename(fullname)
    text = _TEXTS.get(os.path.realpath(path))
    code = _compiler(Path(path).read_bytes() if text is None else text, path) if os.path.isfile(path) else None
    if text is None:
        return _original(self, fullname) if code is None else code
    quote(text, path)
    plain: CodeType = self.source_to_code(text, path)
    return plain if code is None else code


def quote(text: bytes, file: str) -> None:
    """Have tracebacks quote lines from a text instead of from the file."""
    lines = io.StringIO(text.decode("utf-8", "replace")).readlines()
    linecache.cache[file] = (len(text), None, lines, file)


class Overriding:
    """The changes, and which of them the script met."""

    def __init__(self, overrides: Overrides) -> None:
        self._wanted = overrides
        self._texts = dict(overrides.texts)

    def watch_imports(self) -> None:
        """Have JAX changed from the moment at which the script imports it."""
        if self._wanted.check is not None:
            change_after_import({"jax._src.shard_map": self.change_shard_map})
        if self._wanted.sizes or self._wanted.is_auto or self._wanted.is_one:
            change_after_import({"jax._src.mesh": self.change_mesh})

    def complain(self) -> None:
        """Say that there was nothing to change; otherwise a comparison would find no difference.

        Raises:
            UsageError: the script made no shard_map, or no mesh of these axes.
        """
        for text in self._texts.values():
            axes = ", ".join(self._wanted.sizes)
            made = f"mesh of the axes {axes}" if text.startswith("mesh") else "shard_map"
            made = "mesh" if text.startswith("axis_types") or self._wanted.is_one else made
            raise UsageError(f"{text!r} changed nothing: the program creates no {made}")

    def change_shard_map(self, module: ModuleType) -> None:
        """Change the check of each shard_map that is made from now on."""

        @instead_of(module, "_shard_map", partial(_refuse, module, "_shard_map"))
        def changed(truth: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("_smap"):
                return truth(*args, **kwargs)
            self._texts.pop("check_vma", None)
            return truth(*args, **{**kwargs, "check_vma": self._wanted.check})

    def change_mesh(self, module: ModuleType) -> None:
        """Change each mesh that is made from now on."""
        truth = module.Mesh.__new__

        @functools.wraps(truth)
        def changed(cls: Any, devices: Any, axis_names: Any, *args: Any, **kwargs: Any) -> Any:
            names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
            if self._wanted.is_auto:
                self._texts.pop("axis_types", None)
                args, kwargs = (), {name: value for name, value in kwargs.items() if name != "axis_types"}
            sizes = self._wanted.sizes
            if sizes and set(names) == set(sizes):
                self._texts.pop("mesh", None)
                devices = _arranged(devices, tuple(sizes[name] for name in names))
            if self._wanted.is_one:
                self._texts.pop("mesh", None)
                devices = _first(devices, len(names))
            return truth(cls, devices, axis_names, *args, **kwargs)

        module.Mesh.__new__ = changed


def _arranged(devices: Any, shape: tuple[int, ...]) -> Any:
    """The same devices in another shape, or as many others as that needs; in JAX's order for them."""
    import jax
    import numpy as np
    from jax.experimental import mesh_utils

    given = np.asarray(devices)
    if given.shape == shape:
        return devices
    chosen = list(given.ravel())
    if len(chosen) != math.prod(shape):
        # More than there are: JAX says how many it wants, and the capture is begun anew with so many.
        chosen = jax.devices()[: math.prod(shape)]
    return mesh_utils.create_device_mesh(shape, chosen)


def _first(devices: Any, dimensions: int) -> Any:
    """The device of the smallest number, which has what is not placed anywhere, in an array of so many dimensions."""
    import numpy as np

    first = min(np.asarray(devices).ravel(), key=lambda device: device.id)
    return np.array([first]).reshape((1,) * dimensions)


def _refuse(module: ModuleType, name: str) -> NoReturn:
    import jax

    raise UsageError(f"JAX {jax.__version__} has no {module.__name__}.{name}: it cannot be overridden")
