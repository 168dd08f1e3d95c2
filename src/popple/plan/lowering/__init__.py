"""Lowering: a plan and a mapping for every op, then the steps of the Program."""
