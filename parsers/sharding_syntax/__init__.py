"""How HLO, Shardy and JAX texts spell meshes, device groups and shardings."""
