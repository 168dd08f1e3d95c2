"""A wrapped model: compiling it, checking it, naming its tensors, saving it."""
