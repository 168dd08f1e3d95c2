"""Layers for the IPU."""
