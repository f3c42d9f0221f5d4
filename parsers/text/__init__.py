"""Texts as people pass them on: damaged by what they went through, with several modules, of either language."""
