"""The capturing process: the only code that imports jax.

It runs in the user's interpreter, where shardscope need not be installed: `bootstrap.LOAD` loads the folder
`inspector/` under a private name, so these modules know each other and `capture/protocol/` by relative imports, the
standard library, numpy and jax, nothing else.
"""
