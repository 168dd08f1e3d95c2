"""Optimisers for the IPU."""
