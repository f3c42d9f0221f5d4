"""Functions that are called in all the ways that there are, each as often as its name says."""

import functools
import os
import sys
import threading

import jax
import jax.numpy as jnp

x = jnp.ones(4)


@jax.jit
def three(x):
    return x * 2


@jax.jit
def four_with_effects(x):
    jax.debug.callback(lambda _: None, x)
    return x * 3


@jax.jit
def five_checked(x):
    return x * 4


@jax.jit
def twenty_in_threads(x):
    return x * 5


@jax.jit
def six_of_two_types(x):
    return x * 6


@functools.partial(jax.jit, static_argnames="scale", donate_argnums=0)
def seven_with_keywords(x, *, scale):
    return {"x": x * scale, "none": None, "pair": (x, [x + 1])}


@jax.jit
def two_before_the_fork(x):
    return x * 7


@jax.pmap
def two_on_all_devices(x):
    return x * 8


for _ in range(2):
    two_on_all_devices(jnp.ones((jax.device_count(), 2)))
exec("@jax.jit\ndef one_of_no_file(x): return x * 9\none_of_no_file(x)")
for _ in range(3):
    three(x)
for _ in range(4):
    four_with_effects(x)
five_checked(x)
with jax.debug_nans(True):
    for _ in range(3):
        five_checked(x)
five_checked(x)
twenty_in_threads(x)
threads = [threading.Thread(target=lambda: [twenty_in_threads(x) for _ in range(19)])]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for each in (x, x[:2], x, x, x[:2], x):
    six_of_two_types(each)
for _ in range(7):
    result = seven_with_keywords(jnp.ones(3), scale=2)
assert jax.tree.structure(result) == jax.tree.structure({"x": 0, "none": None, "pair": (0, [0])}), result
assert result["pair"][1][0].tolist() == [2, 2, 2], result
again = jax.jit(three.__wrapped__)  # the same program: JAX has compiled it
for _ in range(2):
    again(x)
compiled = jax.jit(lambda x: x + 1).lower(x).compile()
for _ in range(3):
    compiled(x)
jnp.sin(x) + x
entered = []
sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_filename) if event == "call" else None)
for _ in range(10):
    jnp.sin(x) + x
sys.setprofile(None)
assert entered
assert not [file for file in entered if "/worker/" in file], "operations outside of jit pay for what counts calls"
for _ in range(2):
    two_before_the_fork(x)
jax.effects_barrier()
child = os.fork()
if child == 0:
    two_before_the_fork(x)
    os._exit(0)
os.waitpid(child, 0)
