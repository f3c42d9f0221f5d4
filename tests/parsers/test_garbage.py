"""While much is made, and right after it, the collector of cycles stands still."""

import gc

from shardscope.parsers.garbage import collection_paused


def test_what_was_made_meanwhile_is_old_at_once() -> None:
    seen = []
    gc.unfreeze()  # what commands of other tests may have left
    gc.collect()  # so that none is due
    gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
    try:
        with collection_paused():
            made = [[number] for number in range(200_000)]
        [[] for _ in range(10)]
    finally:
        gc.callbacks.pop()
    assert len(made) == 200_000
    assert not seen
    assert gc.isenabled()
    assert gc.is_tracked(made)
    assert not gc.get_freeze_count()


def test_cycles_made_meanwhile_are_freed_by_a_later_collection() -> None:
    class Node:
        alive = 0

        def __init__(self) -> None:
            self.own = self
            Node.alive += 1

        def __del__(self) -> None:
            Node.alive -= 1

    with collection_paused():
        for _ in range(10):
            Node()
    assert Node.alive == 10
    gc.collect()
    assert Node.alive == 0


def test_objects_that_the_user_froze_stay_frozen() -> None:
    gc.freeze()
    try:
        with collection_paused():
            pass
        assert gc.get_freeze_count(), "some of them may have been freed meanwhile, but not all"
    finally:
        gc.unfreeze()
