"""What user code tells the tracer of its model: blocks, stages, extensions."""
