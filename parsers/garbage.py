"""Python's collector of reference cycles, and when to do without it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 20_000
"""New objects, through which a collection takes a millisecond."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Make many objects without the collector walking through all of them, neither meanwhile nor right afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # The second question takes as long as there are frozen objects.
            if gc.get_count()[0] > MANY and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # with this they are old, and looked through when all are
            gc.enable()


def keep_what_is_there() -> None:
    """Collect once, and have later collections not walk through what is left, which has an owner that frees it."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
