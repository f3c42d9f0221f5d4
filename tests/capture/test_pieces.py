"""Pieces of the capturing process, in this one: where a derivative is taken, diverted messages, kinds of reductions."""

from __future__ import annotations

import copy
import os
import sys
from pathlib import Path
from types import FrameType, SimpleNamespace

import pytest
from shardscope.inspector.capture.protocol.workspace import diverted
from shardscope.inspector.capture.worker.probes.gradients import _place
from shardscope.inspector.capture.worker.probes.partial import REDUCTIONS, _reduction


class Copied:
    """Notes the frame that copies it, which is of Python's own library."""

    def __deepcopy__(self, known: object) -> FrameType:
        return sys._getframe(1)


def test_the_line_that_takes_a_derivative_is_the_users() -> None:
    """Of the frames around a call the innermost that is neither Python's nor JAX's."""
    own = sys._getframe()
    assert _place(own) == (__file__, own.f_lineno)
    frames, line = copy.deepcopy([Copied()]), own.f_lineno
    assert frames[0].f_code.co_filename == copy.__file__
    assert _place(frames[0]) == (__file__, own.f_lineno)
    assert line < own.f_lineno


@pytest.mark.parametrize("kind", [None, "sum", "max", "min", "MAX"])
def test_reductions_by_the_kind_of_unreduced_axes(kind: str | None) -> None:
    """A text, or a member of an enumeration; without one it is a sum, as before JAX 0.12."""
    for given in (kind, None if kind is None else SimpleNamespace(name=kind)):
        spec = SimpleNamespace() if given is None else SimpleNamespace(unreduced_kind=given)
        assert _reduction(SimpleNamespace(spec=spec)) is REDUCTIONS[(kind or "sum").lower()]
    with pytest.raises(NotImplementedError, match="xor"):
        _reduction(SimpleNamespace(spec=SimpleNamespace(unreduced_kind="xor")))


def test_messages_are_diverted_for_a_while(tmp_path: Path) -> None:
    """What libraries write to descriptor 2, not to `sys.stderr`; nothing is left open."""
    before, descriptors = os.fstat(2), sorted(os.listdir("/dev/fd"))
    with diverted(tmp_path / "said"):
        os.write(2, b"one\n")
    with diverted(tmp_path / "said"):
        os.write(2, b"two\n")
    assert (tmp_path / "said").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "said").stat().st_mode & 0o777 == 0o600
    assert (os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino)
    assert sorted(os.listdir("/dev/fd")) == descriptors
