"""What the folders rely on: imports go down only, packages are listed, and nothing generic is importable."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from shardscope.inspector.dataflow.meaning import MEANINGS

ROOT = Path(__file__).parent.parent
RANKS = {"parsers": 0, "samples": 0, "inspector": 1, "tui": 2, "shardscope": 3}
"""Each folder may import itself and those of a lower rank."""

INNER_ORDER = (
    "units",
    "records",
    "catalog",
    "capture/protocol",
    "capture/worker",
    "targets",
    "capture",
    "load",
    "ir",
    "report",
    "dataflow",
    "correspondence",
    "execution_counts",
    "variance",
    "values",
    "collectives",
    "evaluate",
    "shardings",
    "communication",
    "cost",
    "selection",
    "findings",
    "diff",
    "pipeline",
    "experiments",
    "on_screen",
    "traces",
    "trace_errors",
    "check",
    "render",
)
"""The folders and modules of the inspector; each may import itself and those before it."""

EVALUATE = ROOT / "inspector" / "evaluate"
"""The interpreter of HLO: it computes with numpy, in a process of its own, and no other folder imports it."""

CAPTURE = ROOT / "inspector" / "capture"
WORKER = CAPTURE / "worker"
WORKER_CODE = (WORKER, CAPTURE / "protocol", ROOT / "inspector" / "catalog", ROOT / "inspector" / "records.py")
"""What a capturing process loads, in whose interpreter nothing of ours is installed."""


@cache
def modules() -> list[Path]:
    return sorted(path for folder in RANKS for path in (ROOT / folder).rglob("*.py"))


def test_every_package_is_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in modules() if path.name == "__init__.py"}
    assert {name if name.startswith("shardscope") else f"shardscope.{name}" for name in found} == set(listed)
    assert all((path.parent / "__init__.py").exists() for path in modules())


class _Running(ast.NodeTransformer):
    """A file as it runs, without what only its types need."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        return node.orelse if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


@cache
def imported(path: Path, *, as_it_runs: bool = False) -> tuple[str, ...]:
    return tuple(_imported(path, as_it_runs=as_it_runs))


def _imported(path: Path, *, as_it_runs: bool) -> Iterator[str]:
    """The modules that a file imports, by their full names, those of this package from `shardscope` on."""
    tree: ast.AST = ast.parse(path.read_text())
    package = path.parent.relative_to(ROOT).parts
    if package[0] != "shardscope":
        package = ("shardscope", *package)
    for node in ast.walk(_Running().visit(tree) if as_it_runs else tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = package[: len(package) - level + 1]
                yield from (".".join((*base, *filter(None, (module,)), alias.name)) for alias in names)


@pytest.mark.once
@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    rank = RANKS[path.relative_to(ROOT).parts[0]]
    for name in imported(path):
        top, *rest = name.split(".")
        assert top not in RANKS.keys() - {"shardscope"}, f"{name}: a generic name"
        if top == "shardscope":
            folder = rest[0] if rest and rest[0] in RANKS else "shardscope"
            assert RANKS[folder] < rank or path.is_relative_to(ROOT / folder), f"{name} points up"
        elif path.is_relative_to(WORKER):
            assert top in sys.stdlib_module_names | {"jax", "jaxlib", "numpy"}, f"{name} in the capturing process"
        elif any(path.is_relative_to(folder) for folder in WORKER_CODE):
            assert top in sys.stdlib_module_names, f"{name} in what the worker loads"
        elif not path.is_relative_to(ROOT / "samples"):
            is_allowed = top == "numpy" and path.is_relative_to(EVALUATE)
            assert is_allowed or top not in ("jax", "jaxlib", "numpy"), f"{name}: only the capturing process knows jax"
            assert top != "textual" or path.is_relative_to(ROOT / "tui"), f"{name}: only the screen knows textual"
            assert top != "lark" or path == ROOT / "parsers" / "grammar.py", f"{name}: only `lark_of` knows lark"


def inside(name: str, folder: Path) -> bool:
    """Whether a module's full name is that of one in a folder."""
    package = f"shardscope.{'.'.join(folder.relative_to(ROOT).with_suffix('').parts)}"
    return name == package or name.startswith(f"{package}.")


@pytest.mark.once
@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_processes_know_of_each_other_only_the_protocol(path: Path) -> None:
    loads = any(path.is_relative_to(folder) for folder in WORKER_CODE)
    for name in imported(path):
        if loads and name.startswith("shardscope"):
            assert any(inside(name, folder) for folder in WORKER_CODE), f"{name}: not loaded in the capturing process"
        if not path.is_relative_to(EVALUATE):
            assert not inside(name, EVALUATE), f"{name}: only its own process evaluates"
        if not path.is_relative_to(WORKER) and path != CAPTURE / "here.py":
            assert not inside(name, WORKER), f"{name}: only the capturing process runs the worker"


def place_in_order(name: str) -> int:
    """The number of the innermost folder of `INNER_ORDER` that holds a module of the inspector, by its full name."""
    module = name.removeprefix("shardscope.inspector.").replace(".", "/") + "/"
    return max((len(folder), place) for place, folder in enumerate(INNER_ORDER) if module.startswith(f"{folder}/"))[1]


@pytest.mark.once
def test_the_folders_of_the_inspector_import_in_order() -> None:
    upwards = []
    for path in {*(ROOT / "inspector").rglob("*.py")} - {ROOT / "inspector" / "__init__.py"}:
        own = place_in_order(".".join(("shardscope", *path.relative_to(ROOT).with_suffix("").parts)))
        below = (name for name in imported(path) if name.startswith("shardscope.inspector."))
        upwards += [f"{path}: {name} is above {INNER_ORDER[own]}" for name in below if place_in_order(name) > own]
    assert not upwards


FRONT_ENDS = ("inspector/render", "tui")
"""Renderers and screens: they ask the report, and import no analysis."""

BELOW_ANALYSES = set(INNER_ORDER[: INNER_ORDER.index("report") + 1])


@pytest.mark.once
@pytest.mark.parametrize("front", FRONT_ENDS)
def test_renderers_and_screens_ask_the_report(front: str) -> None:
    for path in sorted((ROOT / front).rglob("*.py")):
        for name in imported(path):
            if name.startswith("shardscope.inspector."):
                place = INNER_ORDER[place_in_order(name)]
                assert place in BELOW_ANALYSES | {"render"}, f"{path.relative_to(ROOT)}: {name}"


@pytest.mark.once
def test_no_circle_of_imports() -> None:
    """Each module can be read after all that it imports, be it at its top or in a function."""
    names = {}
    for path in modules():
        package = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(package if package[0] == "shardscope" else ("shardscope", *package))] = path
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    left = {}
    for name, path in names.items():
        # A module of HLO and its parts have each other in their types.
        found = imported(path, as_it_runs=path.is_relative_to(ROOT / "parsers"))
        left[name] = {each if each in names else each.rpartition(".")[0] for each in found} & names.keys() - {name}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left


def after(statement: str) -> set[str]:
    """The modules that are loaded after a statement, in a process of its own."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_importing_the_package_is_cheap() -> None:
    assert not packages(after("import shardscope")) & {"jax", "jaxlib", "numpy", "textual", "lark", "rich"}


def test_help_is_cheap() -> None:
    loaded = packages(after("from shardscope.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"))
    assert not loaded & {"jax", "jaxlib", "numpy", "textual", "lark", "rich", "msgspec"}


def test_the_library_needs_no_screen_and_no_jax() -> None:
    loaded = packages(after("import shardscope.inspector.pipeline, shardscope.inspector.render.text"))
    assert not loaded & {"jax", "jaxlib", "numpy", "textual"}


def test_a_text_report_needs_no_diffs_and_no_explainers() -> None:
    """What few runs need is not what all wait for."""
    loaded = after("import shardscope.commands.run, shardscope.commands.show, shardscope.inspector.render.text")
    few = ("shardscope.inspector.diff", "shardscope.inspector.trace_errors")
    assert not {name for name in loaded if name.startswith(few)}


@pytest.mark.once
def test_the_screen_needs_no_jax() -> None:
    assert not packages(after("import shardscope.tui.app")) & {"jax", "jaxlib", "numpy"}


def test_the_parsers_need_nothing_of_ours() -> None:
    loaded = after("import shardscope.parsers.hlo, shardscope.parsers.mlir")
    assert not {name for name in loaded if name.startswith(("shardscope.inspector", "shardscope.tui"))}
    assert not packages(loaded) & {"rich", "textual", "jax", "numpy", "lark"}


DATAFLOW = ROOT / "inspector" / "dataflow"
KNOWS_OPCODES = (DATAFLOW, ROOT / "inspector" / "catalog", ROOT / "inspector" / "evaluate", CAPTURE)
"""Code that may list operations: the table, the catalogue, the interpreter, and what runs beside JAX."""

OPCODE_SETS = {
    "inspector/cost/host_transfers.py": "a cost: what XLA moves between memories with",
    "inspector/cost/schedule.py": "a format: which instruction ends an asynchronous one",
    "inspector/cost/work.py": "a cost: what moves no bytes",
    "inspector/findings/compiled.py": "collectives that add, of those that reduce",
    "inspector/findings/fixes/reductions.py": "functions that a user calls",
    "inspector/findings/rules/ss13_reshape_splits_sharded_dim.py": "functions that a user calls",
    "inspector/findings/rules/ss22_gather_then_reduce.py": "collectives by what reduces in the same way",
    "inspector/render/tables/execution.py": "figures of a run, no operations",
    "inspector/report/elements.py": "figures of a shard, no operations",
    "inspector/shardings/gspmd_table.py": "what no row of a table is about",
    "inspector/shardings/sharded_dimensions.py": "what reads other parts of a dimension, which rules do not say",
    "inspector/trace_errors/carries.py": "loops that a user calls",
    "inspector/trace_errors/sizes.py": "functions that a user calls",
}
"""Files with a collection of operations, which is not about handing values on. Remove some; add none."""

WALKS_LEFT = 19
"""Worklists along values that are not in dataflow/ yet. Lower it; never raise it."""


def operations_in(node: ast.AST) -> tuple[list[str], int]:
    """The names of operations among the words of the strings in an expression, and the number of words."""
    strings = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))
    words = [word.removeprefix("stablehlo.").replace("-", "_") for text in strings for word in text.split()]
    return [word for word in words if word in MEANINGS], len(words)


def opcode_sets(tree: ast.AST) -> Iterator[int]:
    """The lines of collections with two operations or more, which are most of what is in them."""
    seen: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "frozenset"
        is_set = isinstance(node, (ast.Set, ast.Tuple, ast.List, ast.Dict)) or is_call
        if is_set and node not in seen:
            found, words = operations_in(node)
            if len(found) >= 2 and 2 * len(found) >= words:
                seen.update(ast.walk(node))
                yield node.lineno


def walks(tree: ast.AST) -> Iterator[int]:
    """The lines of loops that take from a list until it is empty."""
    for node in ast.walk(tree):
        calls = (
            (each.func for each in ast.walk(node) if isinstance(each, ast.Call)) if isinstance(node, ast.While) else ()
        )
        if any(isinstance(each, ast.Attribute) and each.attr in ("pop", "popleft") for each in calls):
            yield node.lineno  # type: ignore[attr-defined]


@pytest.mark.once
def test_operations_have_one_table_and_values_one_set_of_walks() -> None:
    sets, worklists = [], []
    for path in sorted((ROOT / "inspector").rglob("*.py")):
        if not any(path.is_relative_to(folder) for folder in KNOWS_OPCODES):
            tree = ast.parse(path.read_text())
            sets += [str(path.relative_to(ROOT)) for _ in opcode_sets(tree)]
            worklists += [f"{path.relative_to(ROOT)}:{line}" for line in walks(tree)]
    assert sorted(sets) == sorted(OPCODE_SETS)  # one in each
    assert len(worklists) <= WALKS_LEFT, "\n".join(worklists)


POSITIONAL_LEFT = 173
"""Calls that give a record more than three fields by position. Lower it; never raise it."""


def is_record(node: ast.AST) -> bool:
    bases = ("Record", "NamedTuple", "Struct")
    return isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id in bases for b in node.bases)


@pytest.mark.once
def test_fields_of_records_are_named_from_the_fourth_on() -> None:
    nodes = [(path, node) for path in modules() for node in ast.walk(ast.parse(path.read_text()))]
    records = {node.name for _, node in nodes if is_record(node)}  # type: ignore[attr-defined]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in records
        if len(node.args) > 3 and not any(isinstance(each, ast.Starred) for each in node.args)
    ]
    assert len(found) <= POSITIONAL_LEFT, "\n".join(found)


CEILINGS = {
    "inspector/capture": 19_790,
    "inspector/catalog": 530,
    "inspector/check": 250,
    "inspector/collectives": 1905,
    "inspector/communication": 930,
    "inspector/cost": 1650,
    "inspector/correspondence": 925,
    "inspector/dataflow": 2105,
    "inspector/diff": 1380,
    "inspector/evaluate": 3470,
    "inspector/execution_counts": 550,
    "inspector/experiments": 3745,
    "inspector/findings": 8920,
    "inspector/ir": 1906,
    "inspector/render": 8735,
    "inspector/report": 2840,
    "inspector/selection": 285,
    "inspector/shardings": 2770,
    "inspector/targets": 360,
    "inspector/trace_errors": 4282,
    "inspector/traces": 690,
    "inspector/values": 195,
    "inspector/variance": 490,
    "parsers": 8320,
    "shardscope": 3825,
    "tui": 7025,
}
"""Lines of Python of each folder, its own and those below it. To raise one is a commit that says what was bought."""

SLACK = 300
"""Lines by which a folder may be below its ceiling: then that comes down."""


@pytest.mark.once
def test_folders_keep_below_their_ceilings() -> None:
    lines = {
        folder: sum(len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")) for folder in CEILINGS
    }
    assert {folder: count for folder, count in lines.items() if count > CEILINGS[folder]} == {}
    assert {folder: count for folder, count in lines.items() if count < CEILINGS[folder] - SLACK} == {}


STARTING = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "system", "spawnv", "spawnve", "spawnvp"},
}
STARTS = {
    "inspector/capture/child.py": "the class of all of them",
    "inspector/capture/children.py": "the guardian itself",
    "inspector/capture/guarding.py": "what the guardian looks with",
    "inspector/capture/worker/reduction/reduce.py": "what evaluates a candidate, in a guarded process",
    "inspector/capture/worker/script_trial.py": "forks of a guarded process",
    "inspector/capture/worker/warm_server.py": "forks of a guarded process, each guarded by its own capture",
    "tui/navigation.py": "the user's editor, which may have unsaved text",
}
"""Files that start processes themselves or name their class, all others by `Children`."""


@pytest.mark.once
def test_processes_are_guarded() -> None:
    found = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(id=module), attr=name) if name in STARTING.get(module, ()):
                    found.add(str(path.relative_to(ROOT)))
                case ast.ImportFrom(module="subprocess" | "multiprocessing", names=names):
                    assert not names, f"{path}: imports names of {node.module}"
    assert found == STARTS.keys()
