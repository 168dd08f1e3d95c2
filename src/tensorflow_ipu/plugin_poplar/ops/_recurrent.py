"""LSTM and GRU over a sequence, in TensorFlow's operators.

Sequences are time-major. Gates lie in a kernel as in Keras: input, forget, candidate,
output; and update, reset, candidate. A layer is a function of its own, with the names,
arguments and results by which the cost model knows layers (those of Keras).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

Tensor = Any
Step = Callable[[Tensor, Any], Any]


def _hard_sigmoid(x: Tensor) -> Tensor:
    return tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": tf.tanh,
    "relu": tf.nn.relu,
    "softmax": tf.nn.softmax,
    "sigmoid": tf.sigmoid,
    "hard_sigmoid": _hard_sigmoid,
}


def lstm_step(
    kernel: Tensor, biases: Tensor, activation: str, recurrent_activation: str
) -> Step:
    """From inputs and (h, c) of a step to its (h, c)."""
    act, gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    bias = tf.reshape(biases, [-1])

    def step(inputs: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        summed = tf.matmul(tf.concat([inputs, h], 1), kernel) + bias
        i, f, candidate, o = tf.split(summed, 4, axis=1)
        c = gate(f) * c + gate(i) * act(candidate)
        return gate(o) * act(c), c

    return step


def gru_step(
    kernel: Tensor,
    biases: Tensor,
    activation: str,
    recurrent_activation: str,
    reset_after: bool,
) -> Step:
    """From inputs and h of a step to its h; inputs may come with attention scores."""
    act, gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    size = biases.shape.as_list()[-1]
    of_inputs, of_h = kernel[:-size], kernel[-size:]
    biases = tf.reshape(biases, [3, -1, size])

    def step(inputs: tuple[Tensor, Tensor], h: Tensor) -> Tensor:
        x, attention = inputs
        x_z, x_r, x_n = tf.split(tf.matmul(x, of_inputs), 3, axis=1)
        z_weights, r_weights, n_weights = tf.split(of_h, 3, axis=1)
        z = gate(x_z + tf.matmul(h, z_weights) + tf.reduce_sum(biases[0], 0))
        r = gate(x_r + tf.matmul(h, r_weights) + tf.reduce_sum(biases[1], 0))
        if reset_after:
            n = x_n + biases[2, 0] + r * (tf.matmul(h, n_weights) + biases[2, 1])
        else:
            n = x_n + tf.matmul(r * h, n_weights) + biases[2, 0]
        z = z * (1 - attention)
        return z * h + (1 - z) * act(n)

    return step


def lstm(
    inputs: Tensor,
    h: Tensor,
    c: Tensor,
    kernel: Tensor,
    biases: Tensor,
    lengths: Tensor | None,
    activations: tuple[str, str],
    keeps_last: bool,
) -> tuple[Tensor, Tensor]:
    """All outputs and the last cell.

    Without `keeps_last` the last cell of shorter sequences is zero.
    """

    def popnn_lstm(
        inputs: Tensor,
        init_h: Tensor,
        init_c: Tensor,
        kernel: Tensor,
        bias: Tensor,
        lengths: Tensor | None,
    ) -> tuple[Tensor, ...]:
        step = lstm_step(kernel, bias, *activations)
        (outputs, cells), (h, c) = unroll(step, inputs, (init_h, init_c), lengths)
        return h, outputs, h, c if keeps_last else cells[-1], tf.constant(0.0)

    _, outputs, _, last, _ = _run(popnn_lstm, inputs, h, c, kernel, biases, lengths)
    return outputs, last


def gru(
    inputs: Tensor,
    h: Tensor,
    kernel: Tensor,
    biases: Tensor,
    lengths: Tensor | None,
    scores: Tensor | None,
    activations: tuple[str, str],
    resets_after: bool,
    recurrent_kernel: Tensor | None = None,
) -> Tensor:
    """All outputs; attention scores scale the update gates.

    The kernel is that of inputs only if that of the state is given by itself.
    """

    def popnn_gru(
        inputs: Tensor,
        init_h: Tensor,
        kernel: Tensor,
        recurrent_kernel: Tensor | None,
        bias: Tensor,
        lengths: Tensor | None,
        scores: Tensor | None,
    ) -> tuple[Tensor, ...]:
        if recurrent_kernel is not None:
            kernel = tf.concat([kernel, recurrent_kernel], 0)
        step = gru_step(kernel, bias, *activations, resets_after)
        if scores is None:
            scores = tf.zeros(tf.shape(inputs)[:2], inputs.dtype)
        steps = (inputs, tf.expand_dims(scores, 2))
        outputs, last = unroll(step, steps, init_h, lengths)
        return last, outputs, last, tf.constant(0.0)

    if not resets_after:
        popnn_gru.__name__ = "popnn_gru_reset_before"
    weights = (kernel, recurrent_kernel, biases)
    return _run(popnn_gru, inputs, h, *weights, lengths, scores)[1]


def _run(layer: Callable[..., Any], *arguments: Tensor | None) -> tuple[tf.Tensor, ...]:
    """Call a layer, inside a program as a function."""
    tensors = [None if a is None else tf.convert_to_tensor(a) for a in arguments]
    if tf.executing_eagerly():
        return layer(*tensors)
    return tf.function(layer, autograph=False)(*tensors)


def unroll(step: Step, inputs: Any, state: Any, seq_len: Tensor | None) -> Any:
    """The states after all steps, stacked, and the last one.

    From the length of a sequence on, its states are zero and its last one is kept.
    """
    inputs, state = tf.nest.map_structure(tf.convert_to_tensor, (inputs, state))
    length = tf.nest.flatten(inputs)[0].shape.as_list()[0]

    def body(time: Tensor, before: Any, stacked: Any) -> tuple[Tensor, Any, Any]:
        after = step(tf.nest.map_structure(lambda x: x[time], inputs), before)
        shown = after
        if seq_len is not None:
            is_inside = tf.expand_dims(tf.less(time, seq_len), 1)
            shown = tf.nest.map_structure(
                lambda s: tf.where(is_inside, s, tf.zeros_like(s)), after
            )
            after = tf.nest.map_structure(
                lambda new, old: tf.where(is_inside, new, old), after, before
            )
        stacked = tf.nest.map_structure(lambda a, s: a.write(time, s), stacked, shown)
        return time + 1, after, stacked

    arrays = tf.nest.map_structure(lambda s: tf.TensorArray(s.dtype, length), state)
    _, last, stacked = tf.while_loop(
        lambda time, *_: time < length, body, (0, state, arrays), parallel_iterations=1
    )
    return tf.nest.map_structure(lambda array: array.stack(), stacked), last
