"""Layers for the IPU: those that keep gradients on their way back."""

from .capture_upstream_gradients import (
    CaptureActivationGradients,
    CaptureUpstreamGradients,
)

__all__ = ["CaptureActivationGradients", "CaptureUpstreamGradients"]
