"""Other names of functions in a file, as calls are read: `psum as total`, `W = lax.with_sharding_constraint`."""

from __future__ import annotations

import ast
from collections import Counter
from copy import deepcopy


def resolve(tree: ast.Module) -> ast.Module:
    """Have each call by another name call the function itself, at the same place in the text."""
    known = _aliases(tree)
    for node in ast.walk(tree) if known else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
            function = known[node.func.id]
            if isinstance(function, ast.Call):  # a partial, whose keywords the call has as well
                given = {keyword.arg for keyword in node.keywords}
                node.keywords += [each for each in function.keywords if each.arg not in given]
                function = function.args[0]
            node.func = ast.copy_location(deepcopy(function), node.func)
    return tree


def _aliases(tree: ast.Module) -> dict[str, ast.expr]:
    """Module names that are assigned once, to a function or to a `partial` with keywords alone, with their values."""
    assigned = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    found: dict[str, ast.expr] = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {alias.asname or alias.name for node in imports for alias in node.names}
    for node in tree.body:
        match node:
            case ast.ImportFrom(module="jax.lax"):
                parent = "lax" if "lax" in modules else "jax.lax" if "jax" in modules else ""
                for alias in node.names if parent else ():
                    found[alias.asname or alias.name] = ast.parse(f"{parent}.{alias.name}", mode="eval").body
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if assigned[name] == 1 and _is_function(value):
                found[name] = value
    return found


def _is_function(value: ast.expr) -> bool:
    match value:
        case ast.Attribute():
            return True
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[ast.Attribute()]):
            return all(keyword.arg is not None for keyword in value.keywords)
    return False
