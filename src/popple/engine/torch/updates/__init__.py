"""Weight updates: optimisers as data and formulas, gradients, loss scales."""
