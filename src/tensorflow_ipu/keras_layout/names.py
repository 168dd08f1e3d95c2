"""Where the modules and names of Keras 2.6 are in tf_keras: a table, and its reading.

In: a module name of Keras 2.6 (`keras.optimizer_v2.adam`). Out: the modules of tf_keras
that hold its contents now, public ones before those that implement them. A few names
that TensorFlow itself had in 2.6 are here too.
"""

from __future__ import annotations

import functools
import importlib.util

SRC = "tf_keras.src"
RNN = f"{SRC}.layers.rnn"

# A module of Keras 2.6 -> the modules that replaced it. Modules below a moved package
# follow it, and what is not in the table kept its name.
MOVED: dict[str, tuple[str, ...]] = {
    "keras": ("tf_keras", SRC),
    "keras.src": (SRC,),
    "keras.combinations": (f"{SRC}.testing_infra.test_combinations",),
    "keras.keras_parameterized": (f"{SRC}.testing_infra.test_combinations",),
    "keras.testing_utils": (f"{SRC}.testing_infra.test_utils",),
    "keras.distribute.sidecar_evaluator": (f"{SRC}.utils.sidecar_evaluator",),
    "keras.initializers.initializers_v2": (f"{SRC}.initializers.initializers",),
    "keras.layers.advanced_activations": (f"{SRC}.layers.activation",),
    "keras.layers.convolutional": (
        f"{SRC}.layers.convolutional",
        f"{SRC}.layers.convolutional.base_conv",
        f"{SRC}.layers.convolutional.base_separable_conv",
    ),
    "keras.layers.convolutional_recurrent": (RNN, f"{RNN}.base_conv_lstm"),
    "keras.layers.cudnn_recurrent": (f"{RNN}.cudnn_gru", f"{RNN}.cudnn_lstm"),
    "keras.layers.dense_attention": (
        f"{SRC}.layers.attention",
        f"{SRC}.layers.attention.base_dense_attention",
    ),
    "keras.layers.einsum_dense": (f"{SRC}.layers.core.einsum_dense",),
    "keras.layers.embeddings": (f"{SRC}.layers.core.embedding",),
    "keras.layers.legacy_rnn": (RNN,),
    "keras.layers.legacy_rnn.rnn_cell_impl": (
        f"{RNN}.legacy_cells",
        f"{RNN}.legacy_cell_wrappers",
    ),
    "keras.layers.legacy_rnn.rnn_cell_wrapper_impl": (f"{RNN}.legacy_cell_wrappers",),
    "keras.layers.local": (
        f"{SRC}.layers.locally_connected",
        f"{SRC}.layers.locally_connected.locally_connected_utils",
    ),
    "keras.layers.merge": (f"{SRC}.layers.merging",),
    "keras.layers.multi_head_attention": (f"{SRC}.layers.attention",),
    "keras.layers.pooling": (
        f"{SRC}.layers.pooling",
        *(f"{SRC}.layers.pooling.base_pooling{n}d" for n in (1, 2, 3)),
        *(f"{SRC}.layers.pooling.base_global_pooling{n}d" for n in (1, 2, 3)),
    ),
    "keras.layers.recurrent": (
        f"{RNN}.gru_v1",
        f"{RNN}.lstm_v1",
        RNN,
        f"{RNN}.dropout_rnn_cell_mixin",
        f"{RNN}.rnn_utils",
    ),
    "keras.layers.recurrent_v2": (
        f"{RNN}.gru",
        f"{RNN}.lstm",
        f"{RNN}.gru_lstm_utils",
    ),
    "keras.layers.rnn_cell_wrapper_v2": (f"{RNN}.cell_wrappers",),
    "keras.layers.wrappers": (RNN, f"{RNN}.base_wrapper"),
    "keras.optimizer_v1": (f"{SRC}.optimizers.optimizer_v1",),
    "keras.optimizer_v2": (
        f"{SRC}.optimizers.legacy",
        f"{SRC}.optimizers.legacy.optimizer_v2",
    ),
    "keras.optimizer_v2.learning_rate_schedule": (
        f"{SRC}.optimizers.schedules.learning_rate_schedule",
    ),
    "keras.optimizer_v2.legacy_learning_rate_decay": (
        f"{SRC}.optimizers.legacy_learning_rate_decay",
    ),
    "keras.optimizer_v2.utils": (f"{SRC}.optimizers.utils",),
    "keras.premade": (f"{SRC}.premade_models",),
    "keras.preprocessing.dataset_utils": (f"{SRC}.utils.dataset_utils",),
    "keras.preprocessing.image": (
        f"{SRC}.preprocessing.image",
        f"{SRC}.utils.image_utils",
    ),
    "keras.preprocessing.image_dataset": (f"{SRC}.utils.image_dataset",),
    "keras.preprocessing.sequence": (
        f"{SRC}.preprocessing.sequence",
        f"{SRC}.utils.data_utils",
    ),
    "keras.preprocessing.text_dataset": (f"{SRC}.utils.text_dataset",),
    "keras.preprocessing.timeseries": (f"{SRC}.utils.timeseries_dataset",),
    "keras.saving.hdf5_format": (f"{SRC}.saving.legacy.hdf5_format",),
    "keras.saving.model_config": (f"{SRC}.saving.legacy.model_config",),
    "keras.saving.save": (f"{SRC}.saving.legacy.save",),
    "keras.saving.saved_model": (f"{SRC}.saving.legacy.saved_model",),
    "keras.saving.saving_utils": (f"{SRC}.saving.legacy.saving_utils",),
    "keras.utils.all_utils": ("tf_keras.utils", f"{SRC}.utils"),
    "keras.utils.generic_utils": (
        f"{SRC}.utils.generic_utils",
        f"{SRC}.saving.legacy.serialization",
        f"{SRC}.saving.object_registration",
    ),
}

# Packages of TensorFlow -> modules in them that `tensorflow.python` named, too.
PYTHON = {
    "framework": ("dtypes", "errors", "function", "tensor_shape"),
    "ops": ("array_ops", "control_flow_ops", "init_ops", "math_ops", "nn", "nn_ops"),
    "util": ("nest",),
}

# A module of today -> names that it had in 2.6 (or that the IPU gave it) -> where they
# are, as "module" or "module:name".
KERAS = {"ipu": "keras.ipu", "__version__": "tf_keras:__version__"}
ADDED: dict[str, dict[str, str]] = {
    "tf_keras": {"ipu": "keras.ipu"},
    "tf_keras.api._v1.keras": KERAS,
    "tf_keras.api._v2.keras": KERAS,
    "tensorflow.keras": KERAS,
    f"{SRC}.engine.base_layer": {
        "KerasExtension": "keras.ipu.extensions._extension:KerasExtension",
        "extension_delegate": "keras.ipu.extensions._extension:extension_delegate",
    },
    f"{SRC}.engine.data_adapter": {
        "expand_1d": "tensorflow_ipu.keras_layout.behaviour:expand_1d",
    },
    f"{SRC}.losses": {"Reduction": "tf_keras.losses:Reduction"},
    f"{SRC}.mixed_precision.policy": {
        "set_policy": f"{SRC}.mixed_precision.policy:set_global_policy",
    },
    "tensorflow.python": {
        name: f"tensorflow.python.{package}.{name}"
        for package, names in PYTHON.items()
        for name in names
    },
    "tensorflow.python.distribute": {
        "distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    },
    "tensorflow.python.eager.function": {"defun": "tensorflow.compat.v2:function"},
    "tensorflow.python.eager.tape": {
        "stop_recording": "tensorflow.python.eager.record:stop_recording",
    },
    "tensorflow.python.feature_column": {
        name: f"tensorflow.python.feature_column.feature_column_v2:{name}"
        for name in (
            "bucketized_column",
            "categorical_column_with_hash_bucket",
            "categorical_column_with_identity",
            "categorical_column_with_vocabulary_file",
            "categorical_column_with_vocabulary_list",
            "crossed_column",
            "embedding_column",
            "indicator_column",
            "numeric_column",
            "shared_embedding_columns_v2",
            "weighted_categorical_column",
        )
    },
    "tensorflow.python.framework.ops": {
        "convert_to_tensor_v2_with_dispatch": (
            "tensorflow.compat.v2:convert_to_tensor"
        ),
    },
    "tensorflow.python.framework.graph_util": {
        name: f"tensorflow.compat.v1.graph_util:{name}"
        for name in ("convert_variables_to_constants", "extract_sub_graph")
    },
    "tensorflow.python.ops.array_ops": {
        name: f"tensorflow.python.ops.array_ops_stack:{name}"
        for name in ("parallel_stack", "stack", "unstack")
    },
    "tensorflow.python.ops.control_flow_ops": {
        "Assert": "tensorflow.python.ops.control_flow_assert:Assert",
        "case": "tensorflow.python.ops.control_flow_case:case",
        "cond": "tensorflow.python.ops.cond:cond",
        "switch_case": "tensorflow.python.ops.control_flow_switch_case:switch_case",
        "while_loop": "tensorflow.python.ops.while_loop:while_loop",
    },
    "tensorflow.python.ops.functional_ops": {
        "partitioned_call": "tensorflow.python.ops.gen_functional_ops:partitioned_call",
    },
    "tensorflow.python.ops.nn": {
        "dynamic_rnn": "tensorflow.python.ops.rnn:dynamic_rnn",
        "rnn_cell": "tf_keras.api._v1.keras.__internal__.legacy.rnn_cell",
    },
    "tensorflow.python.pywrap_tensorflow": {
        "NewCheckpointReader": "tensorflow.compat.v1.train:NewCheckpointReader",
    },
    "tensorflow.python.training": {
        "training_ops": "tensorflow.python.ops.gen_training_ops",
    },
    "tensorflow.python.util.nest": {
        "is_sequence": "tensorflow.python.util.nest:is_nested",
    },
}


@functools.cache
def targets_of(name: str) -> tuple[str, ...]:
    """The modules of today that hold what `name` held in Keras 2.6."""
    if name in MOVED:
        return MOVED[name]
    parent, _, leaf = name.rpartition(".")
    homes = targets_of(parent) if parent else ()
    return tuple(filter(is_module, (f"{home}.{leaf}" for home in homes)))


def is_module(name: str) -> bool:
    """Whether an import of `name` would succeed."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, not a package
        return False
