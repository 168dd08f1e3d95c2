"""The version of Popple."""

__version__ = "0.1.0"
