"""The version of PopTorch whose interface this package has."""

__version__ = "3.4.0"
