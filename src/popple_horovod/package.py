"""The package `horovod`, as far as programs for IPUs use it: `horovod.torch`."""

IS_POPPLE = True
"""Tells this package from a real Horovod."""
