"""Engines: run a captured step on real data with the framework's own kernels.

One package per framework; each imports its framework and `popple.errors` only.
"""
