"""Protobuf messages of the IPU back end, built when they are first imported."""
