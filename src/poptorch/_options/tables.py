"""What becomes of every option: tables for the translation, the log and the docs.

An option is translated, or it is without effect, with the reason; setting one of the
latter is said in the log, once.
"""

from __future__ import annotations

__all__ = [
    "BACKEND_NAMES",
    "TRANSLATED",
    "VARIABLES_WITHOUT_EFFECT",
    "WITHOUT_EFFECT",
]

TRANSLATED = {
    "deviceIterations": "micro-batches per call; Repeat in the program",
    "anchorTensor": "the step returns the tensor too; getAnchoredTensor() reads it",
    "replicationFactor": "replicas run in turn; collectives in the program",
    "inputReplicaGrouping": "which share of a batch a replica reads",
    "broadcastBuffers": "one set of buffers, or one per replica",
    "disableModuleNamescope": "names of tensors begin without those of modules",
    "outputMode": "which outputs a call returns",
    "randomSeed": "seed of the device's random numbers",
    "setExecutionStrategy": (
        "chips and stages of blocks; phases keep weights, optimiser state and "
        "accumulators off the chip; reports name what of phases is not modelled"
    ),
    "autoRoundNumIPUs": "IPUs held on the virtual pod",
    "connectionType": "when the virtual pod's IPUs are held",
    "useIpuId": "which of the virtual pod's devices is held",
    "useIpuModel": "no device is held",
    "useOfflineIpuTarget": "compile only",
    "setAvailableMemoryProportion": "memory bound of matmul and convolution plans",
    "enableExecutableCaching": "compiled models are kept and found again",
    "enableSyntheticData": "inputs are made once; no host traffic in the model",
    "enableProfiling": "a report is written when compiling",
    "modelName": "directory of the report",
    "logCycleCount": "cycleCount() answers with the modelled cycles",
    "showCompilationProgressBar": "progress bar while compiling and modelling",
    "updatableNamedBuffers": "buffers that copyNamedBuffersToDevice() sends",
    "Training.gradientAccumulation": "micro-batches per update",
    "Training.accumulationAndReplicationReductionType": "mean or sum of gradients",
    "Training.setAutomaticLossScaling": "the loss scale adapts to float16 gradients",
    "Training.setMeanAccumulationAndReplicationReductionStrategy": "how to round means",
    "TensorLocations.numIOTiles": "tiles for host traffic beside compute",
    "TensorLocations.setAccumulatorLocation": "off chip: loads and stores around sums",
    "TensorLocations.setOptimizerLocation": "off chip, and shared out over replicas",
    "TensorLocations.setWeightLocation": "off chip: loaded where they are read",
    "relaxOptimizerAttributesChecks": "unknown optimiser attributes only in debug logs",
    "Precision.setPartialsType": "type of partial sums in plans",
    "Precision.enableFloatingPointExceptions": "operators are checked as they run",
    "Precision.enableStochasticRounding": "float16 results and weights round at random",
    "Distributed.disable": "this process alone",
    "Distributed.setEnvVarNames": "number of processes; their replicas in the model",
    "Distributed.configureProcessId": "number of processes; their replicas too",
    "_Popart.set": "the names in the table below; the others are named in the log",
    "_Popart.setEngineOptions": "reports and memory checks; see environment.md",
}

WITHOUT_EFFECT = {
    "appendToLocationExcludes": "the user's line is found without a list of excludes",
    "enableStableNorm": "norms are PyTorch's own, which are the stable ones",
    "logDir": "there are no log files",
    "maxRepeatLogs": "no log line is repeated",
    "sourceLocationExcludes": "the user's line is found without a list of excludes",
    "syncPattern": "the model has one pattern of synchronisation",
    "Jit.traceModel": "deprecated in PopTorch",
    "Precision.halfFloatCasting": "deprecated in PopTorch",
    "Precision.runningStatisticsAlwaysFloat": "deprecated in PopTorch",
    "TensorLocations.setActivationLocation": (
        "activations are modelled on the chip, and the report says so"
    ),
    "Training.setConvolutionDithering": "small tensors are always spread over tiles",
    "_Popart.setPatterns": "rewrites of a back end that is not there",
}

VARIABLES_WITHOUT_EFFECT = {
    "POPTORCH_IPU_MODEL_VERSION": "the machine is the one that POPPLE_TARGET names",
    "POPTORCH_MAX_GRAPH_LEN": "the length of traced graphs is not limited",
}
"""Variables of PopTorch that are accepted, and why they change nothing."""

BACKEND_NAMES = {
    "automaticLossScalingSettings.binEdgeLocation": "from where on gradients are large",
    "automaticLossScalingSettings.enabled": "the loss scale adapts itself",
    "automaticLossScalingSettings.thresholdUpperCountProportion": (
        "the share of large gradients at which the scale is halved"
    ),
    "automaticLossScalingSettings.updatePeriod": "updates between two changes of it",
    "autoRecomputation": (
        "what is computed again in the backward pass, on one IPU too: standard, norms, "
        "pipeline stages, all but checkpoints, or nothing"
    ),
    "cachePath": "directory of the executable cache",
    "convolutionOptions": "use128BitConvUnitLoad: weights load twice as fast",
    "enableEngineCaching": "compiled models are kept and found again",
    "enableFloatingPointChecks": "operators are checked as they run",
    "enableFullyConnectedPass": "False: the products of a layer are planned apart",
    "enableOutlining": "repeated layers share one function of the program, or do not",
    "enableStableNorm": "norms sum squares of what is left without the mean",
    "enableStochasticRounding": "float16 results and weights round at random",
    "engineOptions": "reports and memory checks; see environment.md",
    "groupNormStridedChannelGrouping": "groups of normalisation stride over channels",
    "instrumentWithHardwareCycleCounter": "cycleCount() answers",
    "matmulOptions": "use128BitConvUnitLoad: weights load twice as fast",
    "partialsTypeMatMuls": "type of partial sums in plans",
    "replicatedCollectivesSettings.mergeAllReduceCollectives": (
        "collectives of gradients are merged"
    ),
    "syntheticDataMode": "inputs are made once; no host traffic in the model",
    "updatableNamedBuffers": "buffers that copyNamedBuffersToDevice() sends",
}
"""Names of PopART that `_Popart.set` takes and Popple follows.

All others are accepted as PopTorch accepts them and do nothing.
"""
