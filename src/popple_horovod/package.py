"""The package `horovod`, as far as programs for IPUs use it: a part per framework."""

IS_POPPLE = True
"""Tells this package from a real Horovod."""
