"""Runs functions, and writes what each device then holds of their outputs; a child process of the tests.

    python live_shards.py OUT.npz script.py:fn …

The arrays are `fn/OUTPUT` for a whole output and `fn/OUTPUT/DEVICE` for a shard.
"""

import importlib.util
import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import numpy as np

destination, *functions = sys.argv[1:]
modules, found = {}, {}
for function in functions:
    path, name = function.split(":")
    if path not in modules:
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        modules[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[path])
    call = jax.jit(getattr(modules[path], name))
    for number, output in enumerate(jax.tree.leaves(call(*getattr(modules[path], f"{name}_inputs")))):
        found[f"{name}/{number}"] = np.asarray(output, np.float32)
        for shard in output.addressable_shards:
            found[f"{name}/{number}/{shard.device.id}"] = np.asarray(shard.data, np.float32)
np.savez(destination, **found)
