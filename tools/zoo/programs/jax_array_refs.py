"""JAX's guide to Refs: its first function, which adds to a Ref that it closes over."""

from checkouts import script

f = script("jax/docs/array_refs.py", lines=60).f
f_inputs = ()
