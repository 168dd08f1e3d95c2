"""Layers and an optimiser that send tensors to the host while a model trains.

A queue takes one dictionary per batch, so what is to be seen is gathered under names and
sent at the end, by the layer or the optimiser that comes last.
"""

import numpy as np
from tensorflow import keras
from tensorflow.python import ipu


class Gatherer:
    """Gathers tensors by name and sends them as one dictionary."""

    def __init__(self, names=()):
        self.queue = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        self.names = set(names)
        self.pending = {}

    def add(self, name, tensor):
        """Keep a tensor, if it is one of those to be seen (all if none are named)."""
        if not self.names or name in self.names:
            self.pending[name] = tensor

    def send(self):
        """Put what was gathered into the queue; what it returns has to be run."""
        tensors, self.pending = self.pending, {}
        return self.queue.enqueue(tensors)

    def receive(self):
        """All that was sent: arrays by name, the first axis counts batches."""
        if not self.queue.enqueued:
            return {}
        return {name: np.asarray(a) for name, a in self.queue.dequeue().items()}


class Show(keras.layers.Layer):
    """Passes its input on, and shows it to the host under its own name."""

    def __init__(self, gatherer, is_last=False, **kwargs):
        super().__init__(**kwargs)
        self.gatherer, self.is_last = gatherer, is_last

    def call(self, inputs):
        self.gatherer.add(self.name, inputs)
        if self.is_last:
            self.gatherer.send()
        return inputs


class ShowGradients(keras.optimizers.SGD):
    """Gradient descent that shows the gradients it applies, by name of the variable."""

    def __init__(self, gatherer, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.gatherer = gatherer

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        for gradient, variable in pairs:
            self.gatherer.add(variable.name.replace(":0", ""), gradient)
        self.gatherer.send()
        return super().apply_gradients(pairs, *args, **kwargs)
