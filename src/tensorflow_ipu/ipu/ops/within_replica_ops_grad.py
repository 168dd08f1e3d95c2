"""Nothing to register: the operations are made of differentiable ones."""
