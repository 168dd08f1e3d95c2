"""Building blocks that rules share: passes, reductions, searches for splits."""
