"""Faults by number, as SQLite tests for them: the n-th call of the system fails, for every n, in every command.

    python tools/faults.py [COMMAND…]           calls that fail, signals at random moments
    python tools/faults.py --fast               commands that capture nothing, and no signals

A command is run with everything imported, in a fork that fails at its n-th open, write, read, fork, rename, … with
ENOSPC, EMFILE, EIO or EAGAIN. It has to end with a documented exit status, without a traceback, and leave nothing:
no process, no temporary folder, no worktree. The last line of standard error says why, or the result is complete.
"""

from __future__ import annotations

import argparse
import builtins
import errno
import io
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NoReturn

from shardscope.inspector.capture.propagation import Propagation
from shardscope.inspector.capture.protocol import bootstrap, wire
from shardscope.inspector.capture.spawn import Request, capture

DOCUMENTED = {0, 1, 2, 3, 4, 5, 6, 129, 130, 143}

AUDITED = {
    "open": (errno.EMFILE, errno.EIO),
    "subprocess.Popen": (errno.EAGAIN,),
    "os.mkdir": (errno.ENOSPC,),
    "os.rename": (errno.ENOSPC,),
    "os.scandir": (errno.EIO,),
    "os.listdir": (errno.EIO,),
    "os.remove": (errno.EIO,),
}
WRAPPED = {
    "write": (errno.ENOSPC, errno.EPIPE),
    "read": (errno.EIO,),
    "pipe": (errno.EMFILE,),
    "fsync": (errno.ENOSPC,),
    "stat": (errno.EIO,),
}
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
MARK = f"SHARDSCOPE_FAULTS_{os.getpid()}"
SWEEP = "from shardscope.inspector.capture.scratch import Scratch; Scratch()"

REPLAY = """
import os, sys, time
folder, *arguments = sys.argv[1:]
if arguments:
    data = open(folder + "/frames", "rb").read()
    for start in range(0, len(data), len(data) // 10 + 1):
        time.sleep(0.03)
        os.write(int(arguments[1]), data[start:start + len(data) // 10 + 1])
else:
    source, destination, _ = sys.stdin.read().split("\\n")
    open(destination, "wb").write(open(folder + "/propagated", "rb").read())
"""

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
def fn(v):
    return jax.lax.psum(v, "x")
inputs = (jnp.arange(8.0),)
if __name__ == "__main__":
    fn(*inputs)
"""

FAST: dict[str, Sequence[str]] = {
    "open": ("open", "kept.shardscope"),
    "open -o": ("open", "kept.shardscope", "--format", "json", "-o", "out"),
    "open text": ("open", "text.hlo", "--format", "markdown"),
    "diff": ("diff", "kept.shardscope", "kept.shardscope"),
    "check": ("check", "kept.shardscope", "--golden", "golden.json", "--budget", "all-reduce: none"),
    "check --update": ("check", "kept.shardscope", "--golden", "other/golden.json", "--update"),
    "explain": ("explain", "psum"),
    "rules": ("rules",),
    "samples": ("samples",),
}
SLOW: dict[str, Sequence[str]] = {
    "run": ("run", "script.py:fn", "--save", "saved", "--format", "json"),
    "run --no-live": ("run", "script.py:fn", "--no-live"),
    "diff --git": ("diff", "script.py:fn", "--git", "HEAD"),
    "trace": ("trace", "--devices", "4", "script.py"),
    "trace --save": ("trace", "--save", "saved", "--match", "fn", "--format", "json", "--devices", "4", "script.py"),
    "check script": ("check", "script.py:fn", "--budget", "all-reduce: none"),
    "run --verify": ("run", "missing_reduce_scatter:faulty", "--no-live", "--verify"),
    "targets": ("targets",),
}


class Counted(io.FileIO):
    """A file whose writes and reads are counted."""

    count: Callable[[str], None]

    def write(self, data: Any) -> int:
        """Write, or fail."""
        self.count("write")
        return super().write(data)

    def readinto(self, buffer: Any) -> int:
        """Read, or fail."""
        self.count("read")
        return super().readinto(buffer)

    def readall(self) -> bytes:
        """Read all, or fail."""
        self.count("read")
        return super().readall()


def opened(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, closefd: bool = True, **options: Any) -> Any:
    """As `open`."""
    raw = Counted(file, mode.replace("b", "").replace("t", ""), closefd)
    buffered = io.BufferedReader(raw) if mode.startswith("r") and "+" not in mode else io.BufferedWriter(raw)
    return buffered if "b" in mode else io.TextIOWrapper(buffered, *rest, **options)


class Faults:
    """Fails the n-th of the calls of one kind that are made from now on; `hit` tells whether there were so many."""

    def __init__(self) -> None:
        self.kind, self.number, self.code, self.left = "", 0, 0, -1
        sys.addaudithook(self._audit)
        for name in WRAPPED:
            self._wrap(name)
        Counted.count = staticmethod(self._count)
        builtins.open = io.open = opened  # type: ignore[assignment]

    def arm(self, kind: str, number: int, code: int) -> None:
        """Let that call fail."""
        self.kind, self.code, self.left = kind, code, number

    @property
    def hit(self) -> bool:
        """Whether it has failed."""
        return self.left == 0

    def _count(self, kind: str) -> None:
        if kind == self.kind and self.left > 0:
            self.left -= 1
            if self.left == 0:
                raise OSError(self.code, os.strerror(self.code))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in AUDITED and self.left > 0:
            self._count(event)

    def _wrap(self, name: str) -> None:
        function: Callable[..., Any] = getattr(os, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            self._count(name)
            return function(*arguments, **options)

        setattr(os, name, wrapped)


def prepare(folder: Path) -> None:
    """The files that the commands take."""
    (folder / "script.py").write_text(SCRIPT)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(folder)]
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *arguments], check=True)
    (folder / "script.py").write_text(SCRIPT.replace("return jax", "return 2 * jax"))
    command = [sys.executable, "-m", "shardscope"]
    subprocess.run(
        [*command, "run", "psum", "--no-live", "--save", "kept.shardscope", "-o", "report"], cwd=folder, check=True
    )
    subprocess.run(
        [*command, "check", "kept.shardscope", "--golden", "golden.json", "--update"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    from shardscope.inspector.load import load

    found = load(str(folder / "kept.shardscope")).stage("hlo")
    assert found is not None
    (folder / "text.hlo").write_bytes(found.source.data)


def left_behind(folder: Path, before: set[str]) -> Iterator[str]:
    """What is there, and was not before: files, temporary folders, worktrees, processes."""
    for _ in range(100):
        processes = list(_processes(folder))
        if not processes:
            break
        time.sleep(0.05)
    yield from (f"process {pid}" for pid in processes)
    yield from (f"temporary {path.name}" for path in (folder / "tmp").iterdir())
    names = {path.name for path in folder.iterdir()}
    yield from (f"file {name}" for name in sorted(names - before - {"out", "saved", "other"}))
    if (worktrees := folder / ".git" / "worktrees").exists():
        yield from (f"worktree {path.name}" for path in worktrees.iterdir())


def _processes(folder: Path) -> Iterator[int]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with suppress(OSError):
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                marked = MARK.encode() in (place / "environ").read_bytes()
                if state != "Z" and (marked or folder.parent in Path(os.readlink(place / "cwd")).parents):
                    yield int(place.name)


def wrong(status: int, output: str, errors: str, left: Iterable[str], killed: bool = False) -> list[str]:
    """What must not be, in words."""
    found = list(left)
    if not killed and status not in DOCUMENTED:
        found.append(f"status {status}")
    began = "in main" in errors or status != -signal.SIGINT  # and is not Python itself, which is still starting
    if ("Traceback" in errors or "Exception ignored" in errors) and began and '/script.py"' not in errors:
        found.append(f"traceback: {errors.strip().splitlines()[-1]}")
    if (
        not killed
        and status
        and not (errors.strip() or '"failure"' in output)
        and status not in (1, 3)
        and status < 128
    ):
        found.append("no word")
    return found


def run_forked(faults: Faults, folder: Path, command: Sequence[str], fault: tuple[str, int, int]) -> tuple[bool, Any]:
    """Whether the fault came to pass, and status, output and errors of the command."""
    from shardscope.cli import main

    out, err, hit = (folder.parent / name for name in ("stdout", "stderr", "hit"))
    hit.write_bytes(b"")
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.chdir(folder)
            os.environ[MARK] = "1"
            for descriptor, place in ((1, out), (2, err)):
                os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            result = os.open(hit, os.O_WRONLY)
            sys.stdout, sys.stderr = (opened(number, "w", closefd=False) for number in (1, 2))
            faults.arm(*fault)
            try:
                status = main(command)
            except SystemExit as ending:
                status = int(ending.code or 0)
            except BaseException:
                import traceback

                traceback.print_exc()
            number = faults.left
            faults.left = -1
            sys.stderr.flush()
            os.write(result, b"%d" % number)
        finally:
            import atexit

            atexit._run_exitfuncs()
            os._exit(status)
    deadline = time.monotonic() + 120
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True, (-1, "", "Traceback\nno end after 120 s")
        time.sleep(0.005)
    status = os.waitstatus_to_exitcode(ended[1])
    reached = hit.read_bytes() == b"0"
    return reached, (status, out.read_text(errors="replace"), err.read_text(errors="replace"))


def by_number(folder: Path, commands: dict[str, Sequence[str]], most: int) -> int:
    """Print a line for each command and kind of call; returns how many did wrong."""
    faults = Faults()
    before, bad = {path.name for path in folder.iterdir()}, 0
    for name, command in commands.items():
        _import_what_it_needs(folder, command)
        clean(folder, before)
        for kind, codes in {**AUDITED, **WRAPPED}.items():
            for code in codes:
                statuses: dict[int, int] = {}
                for number in range(1, most + 1):
                    hit, (status, output, errors) = run_forked(faults, folder, command, (kind, number, code))
                    if not hit:
                        break
                    statuses[status] = statuses.get(status, 0) + 1
                    if problems := wrong(status, output, errors, left_behind(folder, before)):
                        bad += 1
                        print(f"  WRONG {name}: {kind} {number} {errno.errorcode[code]}: {problems}", flush=True)
                    clean(folder, before)
                if statuses:
                    shown = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
                    print(f"{name:16} {kind:18} {errno.errorcode[code]:8} {shown}", flush=True)
    return bad


def clean(folder: Path, before: set[str]) -> None:
    """Remove what a command has left, and what it wrote."""
    for path in [*(folder / "tmp").iterdir(), *(path for path in folder.iterdir() if path.name not in before)]:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    shutil.rmtree(folder / ".git" / "worktrees", ignore_errors=True)
    for pid in _processes(folder):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def by_signals(folder: Path, commands: dict[str, Sequence[str]], moments: int) -> int:
    """Send each signal at random moments; print a line for each command and signal, and return how many did wrong.

    One in five commands is a process from nothing, and the others are forks, which have imported everything.
    """
    before, bad, chance = {path.name for path in folder.iterdir()}, 0, random.Random(0)
    for name, command in commands.items():
        _import_what_it_needs(folder, command)
        lengths = []
        for fresh in (True, False):
            started = time.monotonic()
            _ended(folder, command, fresh, None, 600)
            lengths.append(time.monotonic() - started)
        for number in (*SIGNALS, None):
            statuses: dict[int, int] = {}
            for count in range(moments):
                clean(folder, before)
                fresh = count % 5 == 0
                moment = chance.uniform(0.05, lengths[not fresh] + (number is None))
                status, output, errors = _ended(folder, command, fresh, number, moment, terminal=number is None)
                statuses[status] = statuses.get(status, 0) + 1
                killed = status == -(number or signal.SIGHUP)  # before it could do anything, or by SIGKILL
                if number == signal.SIGKILL:
                    environment = os.environ | {MARK: "1"}
                    subprocess.run([sys.executable, "-c", SWEEP], env=environment, check=True)
                if problems := wrong(status, output, errors, left_behind(folder, before), killed):
                    bad += 1
                    print(f"  WRONG {name}: {_word(number)} after {moment:.2f} s: {problems}", flush=True)
            shown = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
            print(f"{name:16} {_word(number):18} {shown}", flush=True)
    return bad


def _word(number: signal.Signals | None) -> str:
    return "closed terminal" if number is None else number.name


def _ended(
    folder: Path,
    command: Sequence[str],
    fresh: bool,
    number: signal.Signals | None,
    moment: float,
    *,
    terminal: bool = False,
) -> tuple[int, str, str]:
    """The status, output and errors of a command that gets a signal after so many seconds, or loses its terminal."""
    out, err = (folder.parent / name for name in ("stdout", "stderr"))
    out.write_bytes(b"")
    err.write_bytes(b"")
    child, master = pty.fork() if terminal else (os.fork(), -1)
    if child == 0:
        try:
            _be(folder, command, fresh, None if terminal else (out, err))
        finally:  # of a signal before the command begins
            os._exit(130)
    deadline, shown = time.monotonic() + moment, b""
    ended = (0, 0)
    while not ended[0] and (left := deadline - time.monotonic()) > 0:
        with suppress(OSError):  # it has ended
            if terminal and select.select([master], [], [], 0)[0]:
                shown += os.read(master, 1 << 16)
        time.sleep(min(left, 0.005))
        ended = os.waitpid(child, os.WNOHANG)
    if terminal:
        os.close(master)
    elif number is not None and not ended[0]:
        os.kill(child, number)
    for _ in range(1200):
        ended = ended if ended[0] else os.waitpid(child, os.WNOHANG)
        if ended[0]:
            return os.waitstatus_to_exitcode(ended[1]), out.read_text(errors="replace"), err.read_text(errors="replace")
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1, "", "Traceback\nno end after 60 s"


def _be(folder: Path, command: Sequence[str], fresh: bool, files: tuple[Path, Path] | None) -> NoReturn:
    """Become the command."""
    os.chdir(folder)
    os.environ |= {MARK: "1", "COLUMNS": "120", "LINES": "40", "TERM": "xterm-256color"}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if files is not None:
        for descriptor, place in zip((1, 2), files, strict=True):
            os.dup2(os.open(place, os.O_WRONLY), descriptor)
    if fresh:
        os.execv(sys.executable, [sys.executable, "-m", "shardscope", *command])
    from shardscope.cli import main

    status = 99
    try:
        status = main(command)
    except SystemExit as ending:
        status = int(ending.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        import atexit

        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        atexit._run_exitfuncs()
        os._exit(status)


def record(folder: Path) -> None:
    """Capture the script once, and have all captures replay that: importing JAX is what takes long."""
    frames: list[bytes] = []
    read, ask, command = wire.read, Propagation._ask, bootstrap.command

    def reading(*arguments: Any) -> Iterator[wire.Frame]:
        for frame in read(*arguments):
            frames.append(wire.encode(frame))
            yield frame

    def asking(own: Propagation, process: Any, source: Path, destination: Path, wish: str) -> Any:
        found = ask(own, process, source, destination, wish)
        (folder.parent / "propagated").write_bytes(destination.read_bytes())
        return found

    wire.read, Propagation._ask = reading, asking  # type: ignore[assignment, method-assign]
    *_, last = capture(Request(str(folder / "script.py:fn")))
    wire.read, Propagation._ask = read, ask  # type: ignore[method-assign]
    assert last.complete, last.failure
    (folder.parent / "frames").write_bytes(b"".join(frames))

    def replayed(python: str, entry: str, *arguments: str, hello: str = "") -> list[str]:
        if entry not in ("main", "provenance"):
            return command(python, entry, *arguments, hello=hello)
        return [python, "-S", "-E", "-c", REPLAY, str(folder.parent), *arguments]

    bootstrap.command = replayed


def main() -> int:
    """Try all; returns 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", help=f"of {', '.join([*FAST, *SLOW])}")
    parser.add_argument("--fast", action="store_true", help="only commands that capture nothing, without signals")
    parser.add_argument("--only", choices=("numbers", "signals"), help="one of the two")
    parser.add_argument("--most", type=int, default=200, help="the highest number")
    parser.add_argument("--moments", type=int, default=10, help="of each signal")
    options = parser.parse_args()
    chosen = FAST if options.fast else {**FAST, **SLOW}
    chosen = {name: command for name, command in chosen.items() if not options.commands or name in options.commands}
    parent = tempfile.mkdtemp(prefix="faults-")  # no TemporaryDirectory: forks would remove it when they end
    try:
        folder = Path(parent, "work")
        (folder / "tmp").mkdir(parents=True)
        prepare(folder)
        record(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
        bad = 0
        if not options.fast and options.only != "numbers":
            bad += by_signals(folder, chosen, options.moments)
        if options.only != "signals":
            bad += by_number(folder, chosen, options.most)
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    print(f"{bad} wrong")
    return bool(bad)


def _import_what_it_needs(folder: Path, command: Sequence[str]) -> None:
    """Run a command in this process, so that the calls that are counted in its forks are its own."""
    from shardscope.cli import main

    here = os.getcwd()
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        main(command)
    os.chdir(here)


if __name__ == "__main__":
    sys.exit(main())
