"""Functions and marks for use inside a model; `poptorch.ops` lists the public ones."""
