"""Arguments and results of a model call: bound, checked, taken apart, rebuilt."""
