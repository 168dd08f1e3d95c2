"""Names that releases before SDK 3.4 had and 3.4 has not: three tables.

A name is served from where its successor is (`MOVED`), or refused with what took its
place (`GONE`). Modules that have another name today are in `MODULES`, those that are
refused in GONE, under the package they lay in. `_finder` gives each module its names
when it is loaded; a test walks all of them. Nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GONE", "MODULES", "MOVED"]

IPU = "tensorflow.python.ipu"
KERAS = "keras.ipu"
_OLD_MODELS = f"{KERAS}._old_models"
_ADDONS = "ipu_tensorflow_addons.keras.layers"
_PIPELINE_STAGE = f"{KERAS}.extensions:PipelineStage"

# A module that has gone -> the module that has its names.
MODULES: Mapping[str, str] = {
    f"{IPU}.autoshard_cnn": f"{IPU}.autoshard",
    f"{IPU}.horovod": f"{IPU}.distributed",
    f"{IPU}.ipu_optimizer": f"{IPU}.optimizers.ipu_optimizer",
    f"{IPU}.cross_replica_optimizer": f"{IPU}.optimizers.cross_replica_optimizer",
    f"{IPU}.gradient_accumulation_optimizer": (
        f"{IPU}.optimizers.gradient_accumulation_optimizer"
    ),
    f"{IPU}.map_gradient_optimizer": f"{IPU}.optimizers.map_gradient_optimizer",
    f"{IPU}.sharded_optimizer": f"{IPU}.optimizers.sharded_optimizer",
    f"{IPU}.keras.model": _OLD_MODELS,
    f"{IPU}.keras.pipeline": _OLD_MODELS,
    f"{IPU}.keras.sequential": _OLD_MODELS,
    f"{IPU}.keras.layers.math": f"{_ADDONS}.dense",
    f"{IPU}.keras.optimizers.gradient_accumulate_optimizer": (
        f"{KERAS}.optimizers.gradient_accumulation_optimizer"
    ),
    f"{IPU}.keras": KERAS,
    f"{IPU}.summary_ops": f"{IPU}.ops.summary_ops",
    f"{IPU}.ops.rnn_ops": "ipu_tensorflow_addons.v1.layers.rnn_ops",
    f"{IPU}.rnn_ops": "ipu_tensorflow_addons.v1.layers.rnn_ops",
}

# A module of today -> names that it had -> where they are, as "module:name".
MOVED: Mapping[str, Mapping[str, str]] = {
    IPU: {
        "autoshard_cnn": f"{IPU}.autoshard",
        "horovod": f"{IPU}.distributed",
        "rnn_ops": "ipu_tensorflow_addons.v1.layers.rnn_ops",
        "function": f"{IPU}.ops.functional_ops:outlined_function",
        "Sequential": f"{_OLD_MODELS}:Sequential",
        "summary_ops": f"{IPU}.ops.summary_ops",
    },
    f"{IPU}.distributed": {
        "Adasum": f"{IPU}.distributed._horovod:Adasum",
        "Average": f"{IPU}.distributed._horovod:Average",
        "Sum": f"{IPU}.distributed._horovod:Sum",
    },
    f"{IPU}.distributed.host_collective_ops": {
        "all_gather": f"{IPU}.distributed.host_collective_ops:allgather",
        "all_reduce": f"{IPU}.distributed.host_collective_ops:allreduce",
    },
    f"{IPU}.distributed.ipu_horovod_strategy": {
        "IPUHorovodStrategy": (
            f"{IPU}.distributed.ipu_horovod_strategy:IPUHorovodStrategyV1"
        ),
    },
    f"{IPU}.distributed.ipu_multi_replica_strategy": {
        "IPUMultiReplicaStrategy": (
            f"{IPU}.distributed.ipu_multi_replica_strategy:IPUMultiReplicaStrategyV1"
        ),
    },
    f"{IPU}.ops.functional_ops": {
        "function": f"{IPU}.ops.functional_ops:outlined_function",
    },
    f"{IPU}.ops.nn_ops": {
        "ctc_loss": f"{IPU}.ops.nn_ops:ctc_loss_with_log_probs",
        "ctc_loss_with_logits": f"{IPU}.ops.nn_ops:ctc_loss_v2",
    },
    f"{IPU}.optimizers.ipu_optimizer": {
        "CrossReplicaOptimizer": f"{IPU}.optimizers:CrossReplicaOptimizer",
    },
    KERAS: {
        "CTCLoss": f"{_ADDONS}:CTCLoss",
        "FunctionalExtension": f"{KERAS}.extensions:FunctionalExtension",
        "ModelExtension": f"{KERAS}.extensions:ModelExtension",
        "SequentialExtension": f"{KERAS}.extensions:SequentialExtension",
        "losses": f"{KERAS}.losses",
        "model": _OLD_MODELS,
        "pipeline": _OLD_MODELS,
        "sequential": _OLD_MODELS,
        "Model": f"{_OLD_MODELS}:Model",
        "PipelineModel": f"{_OLD_MODELS}:PipelineModel",
        "PipelineSequential": f"{_OLD_MODELS}:PipelineSequential",
        "PipelinedModel": f"{_OLD_MODELS}:PipelineSequential",
        "Sequential": f"{_OLD_MODELS}:Sequential",
        "SequentialPipelineModel": f"{_OLD_MODELS}:PipelineSequential",
    },
    _OLD_MODELS: {
        "PipelinedModel": f"{_OLD_MODELS}:PipelineSequential",
        "PipelineStage": _PIPELINE_STAGE,
        "SequentialPipelineModel": f"{_OLD_MODELS}:PipelineSequential",
    },
    f"{KERAS}.optimizers": {
        "CrossReplicaOptimizer": (
            f"{KERAS}.optimizers.cross_replica_optimizer:CrossReplicaOptimizer"
        ),
        "GradientAccumulationOptimizer": (
            f"{KERAS}.optimizers.gradient_accumulation_optimizer"
            ":GradientAccumulationOptimizer"
        ),
        "gradient_accumulate_optimizer": (
            f"{KERAS}.optimizers.gradient_accumulation_optimizer"
        ),
    },
}

_REPORTS = "reports of PopVision (the engine options autoReport.*)"
_ALS = "keras.ipu.optimizers.ALSOptimizer"
_TRANSFERS = "nothing: transfers are not verified any more"
_SHARDING = "ipu.scopes.ipu_shard or ipu.pipelining_ops.pipeline"
_KERAS_OPTIMIZERS = (
    "the optimiser itself: an IPUStrategy adds up the gradients of replicas"
)
_MAPPED = (
    "a subclass of the optimiser that changes gradients in `apply_gradients`, or "
    "ipu.optimizers.MapGradientOptimizer around an optimiser of TensorFlow 1"
)

# A module of today -> names that it had and that are refused -> what to use.
GONE: Mapping[str, Mapping[str, str]] = {
    IPU: {
        "sharding_utils": _SHARDING,
    },
    f"{IPU}.autoshard": {"convert_ops_to_nx": _SHARDING},
    f"{IPU}.config": {"KeyId": _TRANSFERS, "VerificationOptions": _TRANSFERS},
    f"{IPU}.ops.summary_ops": {"get_ipu_reports": _REPORTS},
    f"{IPU}.optimizers": {
        "AutomaticLossScalingOptimizer": _ALS,
        "automatic_loss_scaling_optimizer": _ALS,
    },
    f"{IPU}.utils": {
        "KeyId": _TRANSFERS,
        "VerificationOptions": _TRANSFERS,
        "set_verification_options": _TRANSFERS,
    },
    KERAS: {"layer_replacement": "layers of ipu_tensorflow_addons.keras.layers"},
    f"{KERAS}.optimizers": {
        "AutomaticLossScalingOptimizer": _ALS,
        "automatic_loss_scaling_optimizer": _ALS,
        "IpuOptimizer": _KERAS_OPTIMIZERS,
        "ipu_wrappers": _KERAS_OPTIMIZERS,
        "MapGradientOptimizer": _MAPPED,
        "MapGradientOptimizerInvertedChaining": _MAPPED,
        "map_gradient_optimizer": _MAPPED,
    },
}
