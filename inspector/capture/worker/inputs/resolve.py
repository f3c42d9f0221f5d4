"""From `script.py:fn` to the function: the script is imported as Python would run it, but never as `__main__`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from ...protocol.request import UsageError, is_file, split_function
from .. import script_objects


class Resolved(NamedTuple):
    """A function where it was found: `owner` is the module, or the object whose attribute it is.

    `meshes` are those that the script has made where it calls the function.
    """

    function: Any
    name: str
    owner: Any
    module: ModuleType
    meshes: tuple[Any, ...] = ()


class NoProgramError(Exception):
    """A function cannot be traced as one program, but may be run: `why` is the failure if that gives no program."""

    def __init__(self, why: BaseException) -> None:
        super().__init__(str(why))
        self.why = why


def prepare_path(function: str) -> None:
    """Make `sys.path` what `python script.py` gives, or `python -m package.module` for a module."""
    place, _ = split_function(function)
    if getattr(sys.flags, "safe_path", False):
        return
    if is_file(place):
        path = Path(place).resolve()
        sys.path.insert(0, str(path.parent))
        if (root := package_root(path)) != path.parent:
            sys.path.insert(1, str(root))
    else:
        sys.path.insert(0, os.getcwd())


def find_script(function: str) -> Path | None:
    """The file that will be imported; None for a module, which Python finds.

    Raises:
        UsageError: there is no such file.
    """
    place, _ = split_function(function)
    path, parts = Path(place), re.fullmatch(r"(.+\.(?:py|ipynb))[.:]+(.+)", function)
    if parts is not None and not path.is_file() and Path(parts[1]).is_file():
        raise UsageError(f"there is no file {place}", did_you_mean([":".join(parts.groups())]))
    if is_file(place) and not path.is_file():
        is_there = os.path.lexists(path)
        message = f"{place} is not a regular file" if is_there else f"there is no file {place}"
        raise UsageError(message, None if is_there else did_you_mean(map(str, _similar_files(path))))
    return path.resolve() if is_file(place) else None


def _similar_files(path: Path) -> list[Path]:
    """The files of Python whose names are most like that of one that is not there, in its folder or in this one."""
    folder = path.parent if path.parent.is_dir() else Path()
    files = sorted(folder.iterdir(), key=lambda each: each.suffix == path.suffix)
    known = {each.stem: each for each in files if each.suffix in (".py", ".ipynb")}
    return [known[name] for name in difflib.get_close_matches(path.stem, known, n=3)]


def no_module(name: str) -> UsageError:
    """The error for a module that is not there."""
    near = (".".join(each.with_suffix("").parts) for each in _similar_files(Path(*name.split("."))))
    hint = did_you_mean(near) or "a file is named with its .py; `shardscope samples` lists the samples"
    return UsageError(f"there is no module {name!r}", hint)


class _ScriptLoader(SourceFileLoader):
    """Loads a script as `python SCRIPT` does: without bytecode, which is stale if it changes twice in a second."""

    def path_stats(self, path: object) -> NoReturn:
        raise OSError


def resolve(function: str) -> Resolved:
    """Import the script and get the function.

    Raises:
        UsageError: there is no such module or attribute, or it cannot be called. What the script raises passes through.
    """
    place, dotted = split_function(function)
    script = find_script(function)
    module = _import_file(script) if script else _import_module(place)
    return look_up(module, place, dotted)


def look_up(module: ModuleType, place: str, dotted: str) -> Resolved:
    """Get a function of a module.

    Raises:
        UsageError: there is no such attribute, or it cannot be called.
    """
    owner: Any = module
    value: Any = module
    for name in dotted.split("."):
        owner = value
        try:
            value = getattr(owner, name)
        except AttributeError:
            kind = "class" if isinstance(owner, type) else type(owner).__name__
            kind += f" {owner.__name__}" if isinstance(owner, type | ModuleType) else ""
            where = place if owner is module else f"{kind} in {place}"
            hint = _local(name, owner, place) or _similar(name, owner) or _suggest(name, owner)
            raise UsageError(f"{where} has no {name!r}", hint) from None
    if not callable(value):
        raise UsageError(
            f"{dotted} in {place} is not a function but of type {type(value).__name__}", _suggest("", owner)
        )
    return Resolved(value, dotted.rpartition(".")[2], owner, module)


def attribute(name: str, found: Resolved, option: str) -> Any:
    """Return the object that an option names: in the script, in the function's owner, or in a file, `other.py:make`.

    Raises:
        UsageError: there is no such file or name. What the file raises passes through.
    """
    place, name = split_function(name) if ":" in name else ("", name)
    if place:
        find_script(f"{place}:{name}")
        module = _import_file(Path(place).resolve()) if is_file(place) else _import_module(place)
    for owner in (module,) if place else (found.module, found.owner):
        value = owner
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is not None:
            return value
    where = place or found.module.__name__
    raise UsageError(f"{option} {name}: {where} has no {name!r}", _suggest(name, module if place else found.module))


def _import_file(path: Path) -> ModuleType:
    """Import a script by its path: as a member of its package where it stands in one, else under its own name."""
    root = package_root(path)
    if root != path.parent:
        relative = path.relative_to(root).with_suffix("")
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        name = ".".join(parts)
        module = importlib.import_module(name)
        found = getattr(module, "__file__", None)
        if found is None or not path.samefile(found):
            raise UsageError(f"{name} is imported from {found}, not from {path}")
        return module
    name = path.stem if path.stem not in sys.modules else f"_script_{path.stem}"
    loader = _ScriptLoader(name, str(path)) if path.suffix == ".py" else None
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file", "a script's name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
            raise
        raise no_module(error.name) from None


def package_root(path: Path) -> Path:
    """The folder that holds the outermost package around a file; the file's own folder where it is in none."""
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def _suggest(name: str, owner: Any) -> str | None:
    if near := _similar(name, owner):
        return near
    public = [n for n in dir(owner) if not n.startswith("_")]
    own = owner.__name__ if isinstance(owner, ModuleType) else None
    functions = [n for n in public if callable(v := getattr(owner, n, None)) and own in (None, _module_of(v))]
    return f"it has {', '.join(functions[:12])}" if functions else None


def _similar(name: str, owner: Any) -> str | None:
    return did_you_mean(difflib.get_close_matches(name, [n for n in dir(owner) if not n.startswith("_")], n=3))


def _local(name: str, owner: Any, place: str) -> str | None:
    """Return the function of the script that has a variable, or another function, of this name; None without one."""
    functions = [owner]
    if isinstance(owner, ModuleType):
        functions = [value for value in vars(owner).values() if _module_of(value) == owner.__name__]
    elif isinstance(owner, type):
        functions = [*vars(owner).values()]
    codes = (getattr(inspect.unwrap(each), "__code__", None) for each in functions if callable(each))
    holding = (code for code in codes if code is not None and name in (*code.co_varnames, *code.co_cellvars))
    held_by = next((code.co_name for code in holding if name not in code.co_varnames[: code.co_argcount]), None)
    if held_by is None:
        return None
    return f"it is local to {held_by}, which the script has to call: shardscope {place}:{name}"


def _module_of(value: Any) -> Any:
    return script_objects.attribute(value, "__module__")


def did_you_mean(names: Iterable[str]) -> str | None:
    """Ask for similar names; None without any."""
    *others, last = [*names] or [""]
    return f"did you mean {' or '.join(filter(None, (', '.join(others), last)))}?" if last else None
