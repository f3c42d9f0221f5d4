"""Functions that are called in all the ways that there are, each as often as its name says."""

import os
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
for _ in range(2):
    two_before_the_fork(x)
jax.effects_barrier()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
jax.jit(lambda x: x + 1).lower(x).compile()
