"""Spellings of meshes, device groups and shardings in HLO, Shardy and JAX texts."""
