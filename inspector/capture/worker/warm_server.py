"""A warm server: a Python that has imported JAX and forks, for each request, a process that looks like a new one.

Run with `python -c TEXT SOCKET LOAD FOLDER`, as `python -c LOAD …` would be, with its frames in `<string>`.
A fork hides whatever was imported beyond what a fresh interpreter has. The first import of each hidden module looks for
it as usual, and takes the one that is there already only if that is the file that would be executed: what a script puts
in front of `sys.path` shadows what it would shadow, and what is to change a module after its import is called.
"""

from __future__ import annotations

import sys

MAIN = {name: value for name, value in globals().items() if name.startswith("__") and name != "__doc__"}
import importlib  # noqa: E402 (its parts are the interpreter's own: a second copy of them does not work)

FRESH = frozenset(sys.modules)
PATH = tuple(sys.path)

import array  # noqa: E402 (only now, so that they are hidden, too)
import contextlib  # noqa: E402
import gc  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import pkgutil  # noqa: E402
import socket  # noqa: E402
import time  # noqa: E402
import types  # noqa: E402
import warnings  # noqa: E402
from os import _exit  # noqa: E402 (a script may have its own)
from typing import Any  # noqa: E402

LATE = ("XLA_FLAGS", "PYTEST_CURRENT_TEST", "SHARDSCOPE_GUARDED")
"""Variables that importing JAX does not read."""

TOO_LATE = 97
"""Exit status where a script changes the environment before it imports JAX."""

IDLE_S = 900
"""Seconds without a request, after which a server ends."""

HIGH = 200
"""File descriptors from here on are free."""


class Hidden:
    """Finds modules that are there already, where they are what would be found anyway."""

    def __init__(self, modules: dict[str, Any], own: dict[str, set[str]], variables: dict[str, str]) -> None:
        self._modules = modules
        self._own = own
        self._started = _relevant(os.environ)
        self._set = variables

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a hidden module, or that of what is found in its place."""
        module = self._modules.get(fullname)
        if module is None:
            return None
        found = None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            found = finder.find_spec(fullname, path, target)
            if found is not None:
                break
        if found is None or not _same(found, getattr(module, "__spec__", None)):
            return found
        loader: Any = _Restores(self, module, module.__spec__)
        return importlib.util.spec_from_loader(
            fullname, loader, origin=found.origin, is_package=hasattr(module, "__path__")
        )

    def restore(self, fullname: str) -> None:
        """Import what came with a package; all packages, where it is JAX."""
        top = fullname.partition(".")[0]
        if top not in self._own:
            return
        if _relevant(os.environ) != self._started:
            _exit(TOO_LATE)
        if top == "jax":
            os.environ.update(self._set)
            self._started |= self._set
        wanted = set().union(*self._own.values()) if top == "jax" else self._own[top]
        for name, module in self._modules.items():
            if name in wanted and name not in sys.modules and not self._changed(name, module):
                sys.modules[name] = module

    def import_what_it_imports(self, module: types.ModuleType) -> None:
        """Import the modules that it has, but for those in it, and those whose functions and classes it has."""
        for value in list(vars(module).values()):
            name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            if not isinstance(name, str) or name not in self._modules or name in sys.modules:
                continue
            if not name.startswith(f"{module.__name__}."):
                importlib.import_module(name)

    def _changed(self, name: str, module: types.ModuleType) -> bool:
        """Return whether a finder in front of this one wants it; it gets it then."""
        parent = sys.modules.get(name.rpartition(".")[0])
        for finder in sys.meta_path[: sys.meta_path.index(self)]:
            spec = finder.find_spec(name, getattr(parent, "__path__", None))
            if spec is not None and spec.loader is not None:
                sys.modules[name] = module
                spec.loader.exec_module(module)
                return True
        return False


class _Restores:
    def __init__(self, hidden: Hidden, module: types.ModuleType, spec: Any) -> None:
        self._hidden = hidden
        self._module = module
        self._spec = spec

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return the hidden module."""
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        """Restore what its import would bring."""
        module.__spec__ = self._spec
        self._hidden.restore(module.__name__)
        self._hidden.import_what_it_imports(module)


def _same(found: Any, spec: Any) -> bool:
    if spec is None or found.origin != spec.origin:
        return False
    return bool(found.origin is not None) or list(found.submodule_search_locations or ()) == list(
        spec.submodule_search_locations or ()
    )


def _relevant(environment: Any) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in LATE}


def _preload(load: str, folder: str) -> dict[str, Any]:
    """Import JAX and all of the worker, whose `main` has too few arguments to begin; returns what JAX alone imports."""
    import jax  # noqa: F401

    before = dict(sys.modules)
    sys.argv = ["-c", folder, "main", ""]
    with contextlib.suppress(TypeError):
        exec(load, {"__name__": "__main__"})
    (main,) = (module for name, module in sys.modules.items() if name not in before and name.endswith(".main"))
    package = sys.modules[main.__name__.rpartition(".")[0]]
    for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(each.name)
    sys.path[:] = PATH
    return before


def _own(modules: dict[str, Any]) -> dict[str, set[str]]:
    """The modules that are not Python's, by the names of their packages."""
    tops: dict[str, set[str]] = {}
    for name in modules:
        tops.setdefault(name.partition(".")[0], set()).add(name)
    origins = {top: getattr(getattr(modules.get(top), "__spec__", None), "origin", None) or "" for top in tops}
    return {top: names for top, names in tops.items() if "-packages" in origins[top]}


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    try:
        data, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_SPACE(64 * 4))
    except TimeoutError:
        return None
    if not data:
        return None
    descriptors = array.array("i")
    for _, _, content in ancillary:
        descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    while len(data) < 8:
        data += connection.recv(8 - len(data))
    rest, size = b"", int.from_bytes(data, "big")
    while len(rest) < size:
        piece = connection.recv(size - len(rest))
        if not piece:
            return None
        rest += piece
    return json.loads(rest), list(descriptors)


def _become(request: dict[str, Any], descriptors: list[int], connection: socket.socket, front: int) -> None:
    """Take the request's place in the world: parent, session, folder, environment, file descriptors."""
    for _ in range(100_000):
        if os.getppid() == front:
            break
        time.sleep(0.0001)
    else:
        os._exit(1)
    if request["new_session"]:
        os.setsid()  # before anybody can kill its group
    connection.sendall(os.getpid().to_bytes(8, "big"))
    connection.close()
    import fcntl

    held = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH) for descriptor in descriptors]
    numbers = [0, 1, 2, *request["pass_fds"]]
    for number, descriptor in zip(numbers, held, strict=True):
        os.dup2(descriptor, number)
    kept = set(numbers)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)
    os.chdir(request["cwd"])
    for name in set(os.environ) - set(request["env"]):
        del os.environ[name]
    os.environ.update(request["env"])


def _hide(own: dict[str, set[str]], variables: dict[str, str]) -> dict[str, Any]:
    """Make `sys` what it is where nothing was imported; of JAX, `variables` are those that its import sets."""
    modules = {name: module for name, module in sys.modules.items() if name not in FRESH}
    for name in modules:
        del sys.modules[name]
    sys.meta_path.insert(0, Hidden(modules, own, variables))
    main = types.ModuleType("__main__")
    main.__dict__.update(MAIN)
    sys.modules["__main__"] = main
    return main.__dict__


def _serve(connection: socket.socket, load: str, folder: str) -> tuple[list[str], dict[str, Any]]:
    """Fork for each request; returns its command and its main namespace, in the fork."""
    front = os.getppid()
    before = dict(os.environ)
    own = _own(_preload(load, folder))
    variables = dict(os.environ.items() - before.items())
    gc.collect()
    gc.freeze()
    connection.sendall(b"ready")
    connection.settimeout(IDLE_S)
    while (received := _receive(connection)) is not None:
        request, descriptors = received
        with warnings.catch_warnings():  # "this process is multi-threaded": OpenBLAS ends its threads before a fork
            warnings.simplefilter("ignore")
            first = os.fork()
            second = os.fork() if first == 0 else 0
        if first:
            os.waitpid(first, 0)
            for descriptor in descriptors:
                os.close(descriptor)
        elif second:
            os._exit(0)  # The other is an orphan now: the process in front, which waits for that, becomes its parent.
        else:
            _become(request, descriptors, connection, front)
            return request["args"], _hide(own, variables)
    os._exit(0)


if __name__ == "__main__":
    command, namespace = _serve(socket.socket(fileno=int(sys.argv[1])), *sys.argv[2:4])
    sys.argv = ["-c", *command[3:]]
    sys.orig_argv = command
    exec(command[2], namespace)
