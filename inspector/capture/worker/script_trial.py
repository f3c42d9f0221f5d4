"""Runs of a script with changed text, each in a fork of one process that has imported JAX.

A run answers with how it ended, with the values that it had, and, where it raised, with the arrays, meshes and
shardings in the user's frames. Jobs come as lines of JSON, and answers go out likewise.
"""

from __future__ import annotations

import ast
import builtins
import faulthandler
import functools
import json
import os
import resource
import select
import signal
import sys
import time
import types
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NoReturn

import jax
import jax.numpy  # each fork finds both imported
import numpy as np

from ..protocol.events import WAITS
from ..protocol.request import Overrides, Request, UsageError, split_function
from . import failures, patches, waiting
from .channel import die_with_parent
from .inputs.arguments import concrete, find_arguments, is_abstract
from .inputs.callables import has_jit
from .inputs.context import enter_context
from .inputs.resolve import prepare_path, resolve
from .inputs.running import has_inputs
from .script_objects import attribute

MAX_FRAMES = 64
"""User frames whose values are described."""

MAX_LEAVES = 400
MAX_KEPT = 3
"""Calls of a function whose values are kept."""

SPECS = ("P", "PartitionSpec")
"""Names of the class, by JAX's version."""

MAX_ELEMENTS = 1 << 24
RECORD = "__record_values__"
MAX_STDERR = 20_000


def main(descriptor: str) -> None:
    """Answer each job of standard input, in order, until there is none."""
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = open(int(descriptor), "w")  # noqa: SIM115 (open to the end)
    for line in sys.stdin:
        answers.write(json.dumps(_forked(json.loads(line))) + "\n")
        answers.flush()


def _forked(job: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _child(job, writing)
    os.close(writing)
    text, deadline, is_late = b"", time.monotonic() + job["timeout"], False
    while not is_late:
        is_late = not select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]
        piece = b"" if is_late else os.read(reading, 1 << 16)
        if not piece:
            break
        text += piece
    os.close(reading)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ValueError):
        return dict(json.loads(text))
    said = f"took more than {job['timeout']:g} s" if is_late else Path(job["stderr"]).read_text("utf-8", "replace")
    stack = [] if is_late else _stack_in(job["fault"])
    return {"error": "timeout" if is_late else f"died {status}", "said": said[-MAX_STDERR:], "stack": stack}


def _stack_in(log: str) -> list[tuple[Any, ...]]:
    found = []
    for line in Path(log).read_text("utf-8", "replace").splitlines():
        if line.startswith('  File "'):
            name, _, rest = line.removeprefix('  File "').partition('", line ')
            number, _, function = rest.partition(" in ")
            if not failures.is_internal(name) and not failures.is_pythons_own(name) and number.isdecimal():
                found.append((name, function, int(number), 0, 0, 0))
    return found


def _child(job: dict[str, Any], writing: int) -> NoReturn:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(job["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor, replacement in ((0, null), (1, null), (2, errors)):
        os.dup2(replacement, descriptor)
    faulthandler.enable(open(job["fault"], "wb", buffering=0))  # noqa: SIM115 (open to the end)
    values = _Values()

    def waits(_: int) -> NoReturn:
        _answer(writing, {"error": WAITS, "said": waiting.MESSAGE, "stack": []})

    try:
        with waiting.watched(waits):
            _run(job, values)
        answer: dict[str, Any] = {}
    except SystemExit as error:
        answer = {} if error.code in (None, 0) else _described(error)
    except BaseException as error:
        answer = _described(error)
    _answer(writing, answer | {"values": values.kept, "axes": sorted(values.axes)})


def _answer(writing: int, answer: dict[str, Any]) -> NoReturn:
    try:
        with open(writing, "wb") as pipe:
            pipe.write(json.dumps(answer).encode())
    finally:
        os._exit(0)


def _run(job: dict[str, Any], values: _Values) -> None:
    script = job["script"]
    if job["one"]:
        patches.Overriding(Overrides(is_one=True)).change_mesh(sys.modules["jax._src.mesh"])
        with suppress(Exception):  # JAX before 0.8 has no such option
            jax.config.update("jax_remove_size_one_mesh_axis_from_type", True)
    if job["unchecked"]:
        patches.Overriding(Overrides(check=False)).change_shard_map(sys.modules["jax._src.shard_map"])
    patches.interpose(job["replaced"])
    sys.argv = [script, *job["argv"]]
    _watch_shardings(jax, values)
    data = patches.text_of(script)
    if job["request"]:
        request = Request.decode(job["request"])
        if request.args or request.inputs is not None or has_inputs(data, split_function(request.function)[1]):
            _call(request, values)
            return
    sys.path[:0] = [os.path.dirname(os.path.abspath(script))]
    patches.quote(data, script)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = script
    setattr(builtins, RECORD, values.record)
    builtins.print = values.printed
    code = compile(ast.fix_missing_locations(_Recording().visit(ast.parse(data))), script, "exec")
    exec(code, module.__dict__)
    if job["request"] and not values.has_call_of(split_function(request.function)[1]):
        with suppress(UsageError):
            _call(request, values)


def _call(request: Request, values: _Values) -> None:
    prepare_path(request.function)
    found = resolve(request.function)
    with ExitStack() as stack:
        enter_context(request, found, stack, _Silent())  # type: ignore[arg-type]
        leaves, tree = jax.tree.flatten(find_arguments(request, found))
        given = [_valued(leaf, request.seed, number) for number, leaf in enumerate(leaves)]
        args, kwargs = jax.tree.unflatten(tree, given)
        function = found.function if has_jit(found.function) else jax.jit(found.function)
        values.record("", {"result": jax.block_until_ready(function(*args, **kwargs))})


def _valued(leaf: Any, seed: int, number: int) -> Any:
    if not is_abstract(leaf):
        return leaf
    sharding = getattr(leaf, "sharding", None)
    value = concrete(leaf, seed, number)
    return value if sharding is None else jax.device_put(value, sharding)


class _Silent:
    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def _watch_shardings(jax: Any, values: _Values) -> None:
    """Note the mesh axes over which the script shards what it places, constrains, maps and passes to jit."""

    def watched(truth: Any, keywords: tuple[str, ...], *, results: bool = False) -> Any:
        @functools.wraps(truth)
        def function(*args: Any, **kwargs: Any) -> Any:
            result = truth(*args, **kwargs)
            with suppress(Exception):
                given = [kwargs[name] for name in keywords if name in kwargs]
                for leaf in jax.tree.leaves([given, result if results else args[1:2]], is_leaf=_is_spec):
                    spec = getattr(leaf, "spec", leaf)
                    values.axes.update(_axes_of(leaf) if results else _named_in(spec) if _is_spec(spec) else ())
            return result

        return function

    jax.device_put = watched(jax.device_put, (), results=True)
    jax.jit = watched(jax.jit, ("in_shardings", "out_shardings"))
    jax.shard_map = watched(jax.shard_map, ("in_specs",))
    jax.lax.with_sharding_constraint = watched(jax.lax.with_sharding_constraint, ("shardings",))
    for module in jax, jax.sharding:
        if hasattr(module, "reshard"):
            module.reshard = watched(module.reshard, ("out_shardings",))


def _is_spec(value: Any) -> bool:
    return type(value).__name__ in SPECS


def _named_in(spec: Any) -> Iterator[str]:
    return (axis for entry in _entries(spec) for axis in entry)


class _Recording(ast.NodeTransformer):
    """Has each function of the script, and its module, hand over what it returns and its variables at the end."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def visit_Module(self, node: ast.Module) -> ast.AST:
        self.generic_visit(node)
        node.body.append(_record("", node.body[-1]) if node.body else ast.Pass())
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._names.append(node.name)
        self.generic_visit(node)
        node.body.append(_record(".".join(self._names), node.body[-1]))
        self._names.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        if self._names and node.value is not None:
            call = ast.parse(f"{RECORD}({'.'.join(self._names)!r}, locals(), None)", mode="eval").body
            assert isinstance(call, ast.Call)
            for each in ast.walk(call):
                ast.copy_location(each, node.value)
            call.args[2] = node.value
            node.value = call
        return node


def _record(name: str, after: ast.stmt) -> ast.stmt:
    call = ast.parse(f"{RECORD}({name!r}, locals())").body[0]
    for node in ast.walk(call):
        ast.copy_location(node, after)
    return call


class _Values:
    """Arrays and numbers that the script had, by function, variable and call."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {}
        self.axes: set[str] = set()
        self._calls: dict[str, int] = {}

    def has_call_of(self, name: str) -> bool:
        """Return whether a function of that name, or a part of one, has ended."""
        return any(each == name or each.endswith(f".{name}") for each in self._calls)

    def record(self, name: str, variables: dict[str, Any], result: Any = None) -> Any:
        """Keep the values of a function at its end, and return its result."""
        self._record(name, variables if result is None else {**variables, "return": result})
        return result

    def printed(self, *args: Any, **kwargs: Any) -> None:
        """Keep what the script prints."""
        self._record("print", {f"argument {number}": each for number, each in enumerate(args)})

    def _record(self, name: str, variables: dict[str, Any]) -> None:
        number = self._calls[name] = self._calls.get(name, -1) + 1
        if number >= MAX_KEPT:
            return
        for path, leaf in _leaves(dict(variables)):
            with suppress(Exception):
                self.axes.update(_axes_of(leaf))
                summary = _summary(leaf)
                if summary is not None:
                    self.kept[f"{name}#{number} {path}"] = summary


def _summary(leaf: Any) -> list[Any] | None:
    """Shape, kind, and three numbers that tell two arrays apart."""
    if isinstance(leaf, bool | int | float | complex):
        leaf = np.asarray(leaf)
    if isinstance(leaf, jax.core.Tracer) or not isinstance(leaf, jax.Array | np.ndarray | np.generic):
        return None
    if leaf.size > MAX_ELEMENTS or not (isinstance(leaf, np.ndarray | np.generic) or leaf.is_fully_addressable):
        return None
    array = np.asarray(leaf)
    kind = "bf16" if array.dtype.name == "bfloat16" else array.dtype.name
    if kind == "float64" and not jax.config.jax_enable_x64:  # a number of Python's, made of one in single precision
        kind = "float32"
    if array.dtype.kind not in "biufc" and kind != "bf16":
        return None
    flat = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64).ravel()
    weights = np.cos(np.arange(flat.size) * 0.7 + 0.3)
    numbers = [np.linalg.norm(flat), flat.sum(), flat @ weights]
    return [list(array.shape), kind, [[float(np.real(n)), float(np.imag(n))] for n in numbers]]


def _described(error: BaseException) -> dict[str, Any]:
    """The exception, the user's frames, innermost first, and what is in them."""
    failure = failures.describe(error, "run")
    frames = []
    trace = error.__traceback__
    while trace is not None:
        if failures.is_outside(trace.tb_frame):
            frames.append(trace.tb_frame)
        trace = trace.tb_next
    stack = [(f.file, f.function, f.line, f.end_line, f.column, f.end_column) for f in failure.stack]
    return {
        "error": type(error).__name__,
        "said": failure.said,
        "stack": stack,
        "facts": [
            [] if failures.is_library(f.f_code.co_filename) else _facts(f) for f in frames[: -MAX_FRAMES - 1 : -1]
        ],
    }


def _facts(frame: types.FrameType) -> list[dict[str, Any]]:
    names = {**{n: frame.f_globals[n] for n in frame.f_code.co_names if n in frame.f_globals}, **frame.f_locals}
    for name, value in frame.f_globals.items():
        if type(value).__name__ == "Mesh":
            names.setdefault(name, value)
    for name, value in list(frame.f_locals.items()):
        held = attribute(value, "__dict__")
        if isinstance(held, dict) and not isinstance(value, types.ModuleType | types.FunctionType):
            names |= {f"{name}.{each}": inner for each, inner in held.items()}
    found = []
    for path, leaf in _leaves(names):
        with suppress(Exception):
            if (fact := _fact(leaf)) is not None:
                found.append({"name": path, **fact})
    return found


def _fact(leaf: Any) -> dict[str, Any] | None:
    kind = type(leaf).__name__
    if kind in ("Mesh", "AbstractMesh"):
        return {"kind": "mesh", **_mesh(leaf)}
    if kind == "NamedSharding":
        return {"kind": "sharding", "spec": _entries(leaf.spec), **_mesh(leaf.mesh)}
    if kind in SPECS:
        return {"kind": "spec", "spec": _entries(leaf)}
    if isinstance(leaf, np.ndarray):
        return {"kind": "host", "shape": list(leaf.shape)}
    if not isinstance(leaf, jax.Array):
        return None
    if not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted():
        return {"kind": "deleted", "shape": list(leaf.shape)}
    sharding = jax.typeof(leaf).sharding if isinstance(leaf, jax.core.Tracer) else leaf.sharding
    fact = {"kind": "tracer" if isinstance(leaf, jax.core.Tracer) else "array", "shape": list(leaf.shape)}
    if type(sharding).__name__ == "NamedSharding":
        fact |= {"spec": _entries(sharding.spec), **_mesh(sharding.mesh)}
    elif fact["kind"] == "array":
        fact["devices"] = [device.id for device in sharding.device_set]
    return fact


def _mesh(mesh: Any) -> dict[str, Any]:
    devices = getattr(mesh, "device_ids", None) if type(mesh).__name__ == "Mesh" else None
    return {
        "mesh": [[str(name), int(size)] for name, size in mesh.shape.items()],
        "types": [str(getattr(each, "name", each)) for each in mesh.axis_types],
        **({} if devices is None else {"devices": [int(each) for each in devices.ravel()]}),
    }


def _entries(spec: Any) -> list[list[str]]:
    entries = getattr(spec, "_partitions", None)  # a spec with unreduced axes refuses to be iterated over
    entries = tuple(spec) if entries is None else entries
    return [[*each] if isinstance(each, tuple) else [each] if isinstance(each, str) else [] for each in entries]


def _axes_of(leaf: Any) -> Iterator[str]:
    sharding: Any = getattr(leaf, "sharding", None)
    if type(sharding).__name__ == "NamedSharding":
        for entry, size in zip(_entries(sharding.spec), leaf.shape, strict=False):
            yield from (axis for axis in entry if size > 1)


def _leaves(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The leaves of trees, with their paths as expressions, largest containers first cut off."""
    count = 0
    for name, value in names.items():
        if name.startswith("__") or isinstance(value, types.ModuleType | types.FunctionType | type):
            continue
        try:
            pairs = jax.tree_util.tree_flatten_with_path(value)[0]
        except Exception:  # a tree of the user's own that does not flatten
            continue
        for path, leaf in pairs:
            yield f"{name}{jax.tree_util.keystr(path)}", leaf
            count += 1
            if count >= MAX_LEAVES:
                return
