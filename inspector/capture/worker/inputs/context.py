"""The mesh that a function runs under, and arguments and results with other shardings than the script gives them.

The mesh is named on the command line, or the one under which the script calls the function.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import ModuleType
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from ...protocol.request import Request, UsageError
from ...protocol.trace import Value
from ..channel import Channel
from ..patches import text_of
from ..script_objects import variable
from ..subject import meshes_in_context
from . import callables, wrappers
from .callables import Arguments, Traceable
from .resolve import Resolved, attribute
from .wrappers import jax_jit

SETTERS = ("set_mesh", "use_mesh", "use_abstract_mesh")
"""Functions of `jax` and `jax.sharding` that put a mesh into the context."""


def enter_context(request: Request, found: Resolved, stack: ExitStack, channel: Channel) -> None:
    """Enter the mesh that the request names, else the one that is around a call of the function in its script.

    Raises:
        UsageError: the script has no such name, or it is neither a mesh nor a context manager.
    """
    if request.mesh:
        names, sizes = zip(*request.mesh, strict=True)
        stack.enter_context(set_mesh(jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))))
    if request.context is not None:
        stack.enter_context(_manager(request.context, _named(request.context, found)))
    if request.mesh or request.context is not None or any(meshes_in_context()):
        return
    for node, manager in _around_calls(found):
        place = f"{variable(found.module, '__file__')}:{node.lineno}"
        channel.tell("info", f"runs under {ast.unparse(node)}, as where the script calls it", place)
        stack.enter_context(manager)


def _named(name: str, found: Resolved) -> Any:
    """The value of that name; where there is none, the hint is the names of the script's meshes."""
    try:
        return attribute(name, found, "--context")
    except UsageError as error:
        meshes = [name for name, value in vars(found.module).items() if isinstance(value, Mesh)]
        if not meshes:
            raise
        raise UsageError(str(error), f"meshes of the script: {', '.join(meshes)}") from None


def _manager(name: str, value: Any) -> AbstractContextManager[Any]:
    if isinstance(value, Mesh):
        return set_both(value)
    if isinstance(value, AbstractMesh):
        return jax.sharding.use_abstract_mesh(value)  # type: ignore[no-any-return]
    if isinstance(value, AbstractContextManager) or hasattr(value, "__enter__"):
        return value  # type: ignore[no-any-return]
    if callable(value):
        return _manager(name, value())
    raise UsageError(
        f"--context {name} is of type {type(value).__name__}",
        "name a mesh of the script, a context manager, or a function that returns one of them",
    )


@contextmanager
def set_both(mesh: Mesh) -> Iterator[None]:
    """The context in which `pjit` finds a mesh, too, which looks for that of `with mesh:` alone."""
    with entered(mesh), set_mesh(mesh):
        yield


@contextmanager
def entered(mesh: Mesh) -> Iterator[None]:
    """The context of `with mesh:`."""
    with ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            stack.enter_context(mesh)
        yield


def set_mesh(mesh: Any) -> AbstractContextManager[Any]:
    """The context in which a mesh is in force, by the name that this JAX has for it."""
    setter = getattr(jax, "set_mesh", None) or jax.sharding.use_mesh
    return setter(mesh)  # type: ignore[no-any-return]


def _around_calls(found: Resolved) -> Iterator[tuple[ast.expr, AbstractContextManager[Any]]]:
    """Yield the contexts that put a mesh of the script's globals around its first call of the function."""
    try:
        tree = ast.parse(text_of(variable(found.module, "__file__") or ""))
    except (OSError, SyntaxError, ValueError, TypeError):
        return
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | ast.With) and _calls(
            scope, found.name
        ):
            for node in _expressions(scope):
                if (manager := _mesh_manager(node, found.module)) is not None:
                    yield node, manager
                    return


def _expressions(scope: ast.AST) -> list[ast.expr]:
    """The context managers of a `with`, or the calls that stand alone in a function."""
    if isinstance(scope, ast.With):
        return [item.context_expr for item in scope.items]
    body: list[ast.stmt] = getattr(scope, "body", [])
    return [statement.value for statement in body if isinstance(statement, ast.Expr) and _is_setter(statement.value)]


def _calls(scope: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Call) and name in (getattr(node.func, "id", None), getattr(node.func, "attr", None))
        for node in ast.walk(scope)
    )


def _is_setter(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in SETTERS


def _mesh_manager(node: ast.expr, module: ModuleType) -> AbstractContextManager[Any] | None:
    """The context manager of `mesh` or `jax.set_mesh(mesh)`, where the names are the script's globals."""
    if isinstance(node, ast.Call):
        mesh = _value(node.args[0], module) if _is_setter(node) and len(node.args) == 1 else None
        setter = _value(node.func, module)
        is_mesh = isinstance(mesh, Mesh | AbstractMesh) and callable(setter)
        return setter(mesh) if is_mesh else None
    mesh = _value(node, module)
    return mesh if isinstance(mesh, Mesh) else None


def _value(node: ast.expr, module: ModuleType) -> Any:
    """Return the value of a name with attributes among a module's globals; None where it is anything else."""
    if isinstance(node, ast.Name):
        return getattr(module, node.id, None)
    return getattr(_value(node.value, module), node.attr, None) if isinstance(node, ast.Attribute) else None


KEPT = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "keep_unused", "inline")
"""Options of a jit that stay where it is made again with other shardings."""


def with_shardings(
    function: Any,
    given: Arguments,
    call: Traceable,
    described: tuple[tuple[Value, ...], tuple[Value, ...]],
    specs: Mapping[str, str],
) -> tuple[Any, Arguments]:
    """A traced function and its arguments, with other specs for arguments and results of these paths.

    A jit that names shardings is made again without those of arguments, which have them themselves then.

    Raises:
        UsageError: no argument has a mesh.
    """
    leaves, tree = jax.tree.flatten(given)
    named = [
        each for side in ("in", "out") for each in (wrappers.requested(call.jitted, f"{side}_shardings") or ((), []))[1]
    ]
    known = (getattr(each, "sharding", each) for each in (*leaves, *named))
    mesh = next((each.mesh for each in known if isinstance(each, NamedSharding)), None)
    if mesh is None:
        raise UsageError("no argument has a mesh", "give one of them a NamedSharding")
    inner, bound, keywords = callables.unwrap(function)
    is_made = wrappers.is_jitted(inner) and any(isinstance(each, NamedSharding) for each in named)
    arguments, results = described
    found = []
    dynamic = iter(zip(jax.tree.leaves(call.dynamic()), arguments, strict=False))
    wanted = next(dynamic, None)
    for leaf in leaves:
        if wanted is None or leaf is not wanted[0]:
            found.append(leaf)
            continue
        spec = specs.get(wanted[1].path, wanted[1].spec if is_made else None)
        found.append(leaf if spec is None else _with_sharding(leaf, NamedSharding(mesh, spec_of(spec))))
        wanted = next(dynamic, None)
    args, kwargs = jax.tree.unflatten(tree, found)
    if not is_made:
        return function, (args, kwargs)
    info = getattr(inner, wrappers.ATTRIBUTE)
    asked = [specs.get(each.path, each.spec) for each in results]
    outputs = [None if spec is None else NamedSharding(mesh, spec_of(spec)) for spec in asked]
    again = jax_jit(
        inner.__wrapped__,
        out_shardings=jax.tree.unflatten(jax.tree.structure(call.traced.out_info), outputs),
        **{name: getattr(info, name, None) or None for name in KEPT[:4]},
        **{name: bool(getattr(info, name, False)) for name in KEPT[4:]},
    )
    return again, ((*bound, *args), {**keywords, **kwargs})


def spec_of(text: str) -> PartitionSpec:
    """The spec that is written as `P('x', ('y', 'z'), None)`."""
    call = ast.parse(text, mode="eval").body
    return PartitionSpec(*map(ast.literal_eval, call.args if isinstance(call, ast.Call) else ()))


def _with_sharding(leaf: Any, sharding: NamedSharding) -> Any:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return jax.device_put(leaf, sharding)
