"""The part of TensorFlow that plug-ins of its compiler live in."""
