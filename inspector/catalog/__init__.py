"""Facts about JAX, StableHLO and HLO, as data that the worker reads too: the standard library is all it needs."""
