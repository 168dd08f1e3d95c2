"""Programs in files: traced into executables, run by engines, exported for serving."""
