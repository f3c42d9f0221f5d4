"""What anybody would write: `python bare.py SCRIPT.py:FUNCTION` imports, traces, lowers and compiles."""

import importlib.util
import sys

script, _, name = sys.argv[1].partition(":")
spec = importlib.util.spec_from_file_location("script", script)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

import jax  # noqa: E402 (the script may set JAX's environment)

function = getattr(module, name)
inputs = getattr(module, f"{name}_inputs", None) or getattr(module, "inputs", ())
arguments = inputs() if callable(inputs) else inputs
jitted = function if hasattr(function, "lower") else jax.jit(function)
jitted.lower(*arguments).compile()
