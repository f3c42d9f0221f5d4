"""Changes of a program from outside, as `--with` takes them."""

from __future__ import annotations

import pytest
from shardscope.inspector.capture.protocol.request import EXPECTED, Overrides, UsageError, read_overrides


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        ([], Overrides()),
        (["check_vma=on"], Overrides(check=True)),
        (["check_vma=off"], Overrides(check=False)),
        (["axis_types=auto"], Overrides(is_auto=True)),
        (["mesh=x:2,y:1048575"], Overrides(sizes={"x": 2, "y": 1048575})),
        (["check_vma=off", "mesh=x:1", "axis_types=auto"], Overrides(check=False, is_auto=True, sizes={"x": 1})),
        (["mesh=x:2", "check_vma=on", "mesh=y:3", "check_vma=off"], Overrides(check=False, sizes={"y": 3})),
    ],
)
def test_overrides(texts: list[str], read: Overrides) -> None:
    """Of two changes to the same thing the last counts; each is kept as it was written."""
    found = read_overrides(texts)
    assert (found.check, found.is_auto, found.sizes) == (read.check, read.is_auto, read.sizes)
    assert found.texts == {text.partition("=")[0]: text for text in texts}


@pytest.mark.parametrize(
    "text",
    [
        *("", "mesh", "mesh=", "mesh=x", "mesh=x:", "mesh=:2", "mesh=x:0", "mesh=x:-1", "mesh=x:2,", "mesh=x:1048576"),
        *(
            "check_vma",
            "check_vma=",
            "check_vma=yes",
            "axis_types",
            "axis_types=explicit",
            "axis_type=auto",
            "other=on",
        ),
    ],
)
def test_what_cannot_be_overridden(text: str) -> None:
    """The message has what was written, and the hint what can be."""
    with pytest.raises(UsageError, match=repr(text)) as caught:
        read_overrides(["check_vma=on", text])
    assert caught.value.hint == EXPECTED
