"""Interpreter of HLO: what a module computes on each of its devices, in exact arithmetic.

Floats are float64, and conversions between them are identities. Two modules of one program then differ by the algebra
alone: rounding is gone.
"""
