"""What becomes of every option of a TensorFlow program: three tables.

An option is called by who takes it: the attributes of `IPUConfig` (and fields of its
message, `IpuOptions`, that no attribute stands for), flags of TF_POPLAR_FLAGS,
arguments of `pipelining_ops.pipeline`, of a Keras model's `set_..._options` methods, of
feeds and of accumulating optimisers; and, with a star for those not named, options of
Poplar. Each is in one table. `_translate` acts on them, a test compares them with what
the facade accepts, and `docs/tensorflow.md` shows them; so nothing is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REFUSED", "TRANSLATED", "WITHOUT_EFFECT"]

TRANSLATED: Mapping[str, str] = {
    "IPUConfig.allow_recompute": "forward work is done again in the backward pass",
    "IPUConfig.selection_order": "which IPU takes which shard, for copies over links",
    "IPUConfig.compilation_poplar_options": "autoReport.* asks for a report",
    "IPUConfig.auto_select_ipus": "devices and how many IPUs each holds",
    "IPUConfig.select_ipus": "devices and which IPUs of the virtual pod each holds",
    "IPUConfig.convolutions.poplar_options": "memory and partials of convolution plans",
    "IPUConfig.slices.poplar_options": "memory of lookup plans",
    "IPUConfig.matmuls.poplar_options": "memory and partials of product plans",
    "IPUConfig.matmuls.clear_pass_type": "the products of a layer are planned apart",
    "IPUConfig.norms.use_stable_statistics": (
        "batch norms sum squares of what is left without the mean, as others always do"
    ),
    "IPUConfig.norms.experimental.distributed_batch_norm_replica_group_size": (
        "replicas that share the statistics of batch norms"
    ),
    "IPUConfig.optimizations.enable_graph_outlining": "ops planned alike share code",
    "IPUConfig.optimizations.maximum_cross_replica_sum_buffer_size": (
        "bytes up to which sums over replicas are merged"
    ),
    "IPUConfig.optimizations.maximum_reduce_scatter_buffer_size": (
        "the same where updates are shared out over replicas"
    ),
    "IPUConfig.optimizations.minimum_remote_tensor_size": (
        "the smallest tensors that lie off the chip"
    ),
    "IPUConfig.optimizations.triangular_solve_expander_block_size": (
        "rows of the blocks that are solved on one tile"
    ),
    "IPUConfig.optimizations.cholesky_block_size": "rows of the blocks of one tile",
    "IPUConfig.device_connection.type": "when IPUs of the virtual pod are held",
    "IPUConfig.device_connection.version": "what is modelled if no IPU is held",
    "IPUConfig.experimental.multi_replica_distribution.process_count": (
        "processes whose replicas run a program together, under poprun"
    ),
    "IPUConfig.experimental.multi_replica_distribution.process_index": (
        "which of these processes this one is: the numbers of its replicas"
    ),
    "IPUConfig.floating_point_behaviour.inv": "invalid operations stop the run",
    "IPUConfig.floating_point_behaviour.div0": "divisions by zero stop the run",
    "IPUConfig.floating_point_behaviour.oflo": "results too large stop the run",
    "IPUConfig.floating_point_behaviour.esr": (
        "float16 results round at random; REPLICA_IDENTICAL_ONLY is ON"
    ),
    "IPUConfig.floating_point_behaviour.nanoo": "float16 overflows become NaN",
    "IPUConfig.floating_point_behaviour.set_all": "all of the five",
    "IPUConfig.io_tiles.num_io_tiles": "tiles kept from compute for host traffic",
    "IPUConfig.io_tiles.place_ops_on_io_tiles": (
        "feeds of pipelines run beside compute, on these tiles"
    ),
    "IPUConfig.ipu_model.compile_ipu_code": (
        "whether the IPU Model has code of vertices in its memory"
    ),
    "IPUConfig.ipu_model.tiles_per_ipu": "tiles of a modelled IPU Model",
    "IPUConfig.ipu_model.version": "the chip of a modelled IPU Model",
    "IpuOptions.creator_id": "tells options of an IPUConfig from incomplete ones",
    "IpuOptions.profiling.enable_ipu_trace_events": "events of compiling and running",
    "TF_POPLAR_FLAGS.help": "the flags are printed",
    "TF_POPLAR_FLAGS.use_ipu_model": "no IPU is held; the IPU Model is modelled",
    "TF_POPLAR_FLAGS.ipu_model_tiles": "tiles of a modelled IPU Model",
    "TF_POPLAR_FLAGS.use_on_demand": "attach as DeviceConnectionType.ON_DEMAND",
    "TF_POPLAR_FLAGS.on_demand_device_poll_time": "milliseconds between tries",
    "TF_POPLAR_FLAGS.on_demand_device_timeout": "milliseconds until it is given up",
    "TF_POPLAR_FLAGS.use_synthetic_data": "feeds carry made-up data, or none",
    "TF_POPLAR_FLAGS.synthetic_data_categories": (
        "which feeds: infeed, outfeed; other kinds of data are moved as always"
    ),
    "TF_POPLAR_FLAGS.synthetic_data_initializer": "what made-up data consist of",
    "TF_POPLAR_FLAGS.null_data_feed": "infeeds carry zeros in place of the data",
    "TF_POPLAR_FLAGS.executable_cache_path": (
        "compiled programs are kept in this directory, and found there again"
    ),
    "TF_POPLAR_FLAGS.log_cycle_count": "the modelled cycles of every run are logged",
    "pipeline.computational_stages": "the functions that run one after the other",
    "pipeline.gradient_accumulation_count": "batches of one weight update",
    "pipeline.gradient_accumulation_dtype": "type in which gradients are added",
    "pipeline.gradient_accumulation_for_captured_grads": "captured gradients are added",
    "pipeline.repeat_count": "weight updates of one run",
    "pipeline.batch_serialization_iterations": "more batches per update, one by one",
    "pipeline.inputs": "what stage 0 is given in every batch",
    "pipeline.infeed_queue": "where batches come from",
    "pipeline.outfeed_queue": "where outputs go",
    "pipeline.optimizer_function": "the pipeline trains",
    "pipeline.device_mapping": "the IPU of each stage",
    "pipeline.pipeline_schedule": "how stages take turns in the model",
    "pipeline.forward_propagation_stages_poplar_options": "plans of a stage's ops",
    "pipeline.backward_propagation_stages_poplar_options": "plans of its gradients",
    "pipeline.offload_weight_update_variables": "optimiser state lies off the chip",
    "pipeline.replicated_optimizer_state_sharding": "replicas share updates out",
    "pipeline.offload_activations": "kept activations lie off the chip",
    "pipeline.offload_gradient_accumulation_buffers": "sums lie off the chip",
    "pipeline.offload_weights": "weights lie off the chip",
    "pipeline.outfeed_loss": "only the loss goes to the outfeed",
    "pipeline.accumulate_outfeed": "outputs are summed over the batches of an update",
    "pipeline.accumulate_outfeed_dtype": "type in which outputs are added",
    "pipeline.outfeed_mask": "outputs that do not go to the outfeed",
    "pipeline.reduction_method": "sum, mean or running mean of gradients",
    "pipeline.name": "the beginning of the names of its operations",
    "PipelineStageOptions.convolution_options": "plans of the stage's convolutions",
    "PipelineStageOptions.matmul_options": "plans of the stage's products",
    "PipelineStageOptions.slice_options": "plans of the stage's lookups",
    "set_asynchronous_callbacks.asynchronous": "callbacks hear of every step",
    "set_replication_options.replicated_metric_reduction_method": (
        "which of the replicas' metrics are returned"
    ),
    "set_gradient_accumulation_options.gradient_accumulation_steps_per_replica": (
        "steps of one weight update"
    ),
    "set_gradient_accumulation_options.gradient_accumulation_reduction_method": (
        "sum, mean or running mean of gradients"
    ),
    "set_pipelining_options.gradient_accumulation_steps_per_replica": (
        "steps of one weight update"
    ),
    "set_pipelining_options.device_mapping": "the IPU of each stage",
    "set_pipelining_options.accumulate_outfeed": "metrics are summed on the device",
    "set_pipelining_options.gradient_accumulation_reduction_method": (
        "sum, mean or running mean of gradients"
    ),
    "IPUInfeedQueue.dataset": "what the program reads",
    "IPUInfeedQueue.device_ordinal": "the device whose program reads it",
    "IPUInfeedQueue.prefetch_depth": "elements that tf.data makes in advance",
    "IPUOutfeedQueue.outfeed_mode": "all that was enqueued, or what came last",
    "IPUOutfeedQueue.device_ordinal": "the device whose program writes it",
    "GradientAccumulationOptimizerV2.opt": "the optimiser that applies the sums",
    "GradientAccumulationOptimizerV2.num_mini_batches": "batches of one weight update",
    "GradientAccumulationOptimizerV2.offload_weight_update_variables": (
        "optimiser state lies off the chip"
    ),
    "GradientAccumulationOptimizerV2.replicated_optimizer_state_sharding": (
        "replicas share updates out"
    ),
    "GradientAccumulationOptimizerV2.dtype": "type in which gradients are added",
    "GradientAccumulationOptimizerV2.reduction_method": (
        "sum, mean or running mean of gradients"
    ),
    "poplar_options.availableMemoryProportion": "memory bound of a plan",
    "poplar_options.partialsType": "type of partial sums in plans",
}

_REPORTS = "Reports are made with POPLAR_ENGINE_OPTIONS."
_BY_KERAS = "This argument is automatically set by Keras."
_NOT_IN_KERAS = "This argument is not compatible with Keras."
_MEAN = "It is gone: set `gradient_accumulation_reduction_method` to 'mean' instead."

REFUSED: Mapping[str, str] = {
    "TF_POPLAR_FLAGS.save_interval_report": _REPORTS,
    "TF_POPLAR_FLAGS.save_vertex_graph": (
        "Use the engine option target.saveOutputVertexGraph."
    ),
    "TF_POPLAR_FLAGS.dump_text_reports_to_stdio": _REPORTS,
    "TF_POPLAR_FLAGS.add_all_reduce_copies": (
        "Sums over replicas need no copies any more."
    ),
    "TF_POPLAR_FLAGS.force_replicated_mode": (
        "Programs are replicated if the device has more IPUs."
    ),
    "TF_POPLAR_FLAGS.save_oom_profiler": _REPORTS,
    "pipeline.continuous_weight_updates": (
        "Weights are updated between runs of the pipeline: use repeat_count."
    ),
    "set_gradient_accumulation_options.opt": (
        "The optimizer that the model was compiled with is used."
    ),
    "set_gradient_accumulation_options.num_mini_batches": (
        "`gradient_accumulation_steps_per_replica` says it in this method."
    ),
    "set_gradient_accumulation_options.experimental_normalize_gradients": _MEAN,
    "set_pipelining_options.gradient_accumulation_count": (
        "Set the `gradient_accumulation_steps_per_replica` argument to "
        "`set_pipelining_options` instead."
    ),
    "set_pipelining_options.computational_stages": _BY_KERAS,
    "set_pipelining_options.repeat_count": _BY_KERAS,
    "set_pipelining_options.inputs": _BY_KERAS,
    "set_pipelining_options.infeed_queue": _BY_KERAS,
    "set_pipelining_options.outfeed_queue": _BY_KERAS,
    "set_pipelining_options.optimizer_function": _BY_KERAS,
    "set_pipelining_options.outfeed_loss": _NOT_IN_KERAS,
    "set_pipelining_options.outfeed_mask": _NOT_IN_KERAS,
    "set_pipelining_options.batch_serialization_iterations": _NOT_IN_KERAS,
    "set_pipelining_options.experimental_normalize_gradients": _MEAN,
    "set_infeed_queue_options.dataset": _BY_KERAS,
    "set_infeed_queue_options.infeed_spec": _BY_KERAS,
    "set_infeed_queue_options.element_spec": _BY_KERAS,
    "set_outfeed_queue_options.outfeed_mode": _NOT_IN_KERAS,
    "set_outfeed_queue_options.device_ordinal": _NOT_IN_KERAS,
}

_NO_COMPILER = "programs are run by TensorFlow: there is no compiler to influence"
_ONE_BY_ONE = "the model plans operators one by one, as the program has them"
_NOT_REWRITTEN = "arithmetic runs, and is modelled, as the program has it"
_ONE_ORDER = "the model has one order of operators, which keeps memory low"
_NO_LATENCY = "feeds are modelled by what they carry, not by their latency"
_EVENTS = "events are all kept, or none (enable_ipu_trace_events)"
_AUTO_REPORT = "reports are asked for with the engine options autoReport.*"

WITHOUT_EFFECT: Mapping[str, str] = {
    "IPUConfig.serialization_output_folder": (
        "there are no executables of Poplar; ipu.serving and "
        "experimental_application_compile_op store programs"
    ),
    "IPUConfig.gcl_poplar_options": "the model has one way for each collective",
    "IPUConfig.optimizations.math.fast": _NOT_REWRITTEN,
    "IPUConfig.optimizations.math.dot_strength": _NOT_REWRITTEN,
    "IPUConfig.optimizations.enable_fast_math": _NOT_REWRITTEN,
    "IPUConfig.optimizations.prefetch_data_streams": (
        "the host is modelled as ready with the next batch"
    ),
    "IPUConfig.optimizations.combine_embedding_lookups": _ONE_BY_ONE,
    "IPUConfig.optimizations.combine_matmuls": _ONE_BY_ONE,
    "IPUConfig.optimizations.merge_infeed_io_copies": (
        "copies from the host are modelled one by one"
    ),
    "IPUConfig.optimizations.maximum_inter_ipu_copies_buffer_size": (
        "copies between IPUs are modelled one by one"
    ),
    "IPUConfig.optimizations.maximum_send_recv_cluster_size": (
        "exchanges with the host are modelled one by one"
    ),
    "IPUConfig.optimizations.maximum_reduce_many_buffer_size": _ONE_BY_ONE,
    "IPUConfig.optimizations.maximum_all_gather_buffer_size": (
        "shared weights are gathered together as their gradients are summed"
    ),
    "IPUConfig.optimizations.merge_remote_buffers": (
        "remote buffers are modelled by the bytes they hold"
    ),
    "IPUConfig.optimizations.enable_gather_simplifier": _ONE_BY_ONE,
    "IPUConfig.optimizations.enable_dynamic_slice_replacement": _ONE_BY_ONE,
    "IPUConfig.pooling.poplar_options": "the model has one plan for a pooling operator",
    "IPUConfig.scheduling.algorithm": _ONE_ORDER,
    "IPUConfig.scheduling.maximum_scheduler_lookahead_depth": _ONE_ORDER,
    "IPUConfig.scheduling.maximum_scheduler_search_space_size": _ONE_ORDER,
    "IPUConfig.device_connection.enable_remote_buffers": (
        "every modelled machine has remote buffers"
    ),
    "IPUConfig.experimental.always_rearrange_copies_on_the_host": (
        "data are modelled to arrive as the device wants them"
    ),
    "IPUConfig.experimental.enable_remote_buffer_embedding": (
        "tables of host embeddings are the host's"
    ),
    "IPUConfig.experimental.enable_prng_stability": (
        "replicas draw random numbers of their own"
    ),
    "IPUConfig.io_tiles.available_memory_proportion": (
        "what lies on I/O tiles is counted and not bounded"
    ),
    "IpuOptions.deprecated": "it has had no meaning since it was declared so",
    "IpuOptions.profiling.enable_compilation_trace": _EVENTS,
    "IpuOptions.profiling.enable_io_trace": _EVENTS,
    "IpuOptions.profiling.execution_trace_type": _AUTO_REPORT,
    "IpuOptions.profiling.enable_poplar_reports_text": _AUTO_REPORT,
    "IpuOptions.profiling.enable_poplar_reports_cbor": _AUTO_REPORT,
    "IpuOptions.profiling.enable_poplar_graph": _AUTO_REPORT,
    "IpuOptions.profiling.report_every_nth_execution": _AUTO_REPORT,
    "IpuOptions.profiling.max_report_size": _AUTO_REPORT,
    "IpuOptions.profiling.report_directory": _AUTO_REPORT,
    "IpuOptions.profiling.graph_options": _AUTO_REPORT,
    "TF_POPLAR_FLAGS.max_infeed_threads": "tf.data chooses its threads itself",
    "TF_POPLAR_FLAGS.max_compilation_threads": _NO_COMPILER,
    "TF_POPLAR_FLAGS.while_loop_brute_force_max_trip_count": _NO_COMPILER,
    "TF_POPLAR_FLAGS.fallback_scheduler": _NO_COMPILER,
    "TF_POPLAR_FLAGS.dump_schedule_as_dot": _NO_COMPILER,
    "TF_POPLAR_FLAGS.tensor_map_file_path": "a report says where variables lie",
    "TF_POPLAR_FLAGS.show_progress_bar": _NO_COMPILER,
    "TF_POPLAR_FLAGS.sync_replica_start": "replicas always start together",
    "TF_POPLAR_FLAGS.allow_nans": "NaN passes unless floating_point_behaviour.inv",
    "TF_POPLAR_FLAGS.enable_hlo_verifier": _NO_COMPILER,
    "TF_POPLAR_FLAGS.disable_poplar_version_check": "there is no Poplar to check",
    "pipeline.recomputation_mode": (
        "stages recompute where the backward pass needs it, one layer at a time"
    ),
    "pipeline.weight_update_poplar_options": (
        "updates are modelled as one op per weight, which has one plan"
    ),
    "pipeline.replicated_weight_sharding": "every replica is modelled with all weights",
    "set_gradient_accumulation_options.use_v2_gradient_accumulation_optimizer": (
        "both optimisers accumulate in the same way here"
    ),
    "IPUInfeedQueue.optimise_latency": _NO_LATENCY,
    "IPUOutfeedQueue.buffer_depth": "an outfeed holds whatever is put in",
    "IPUOutfeedQueue.optimise_latency": _NO_LATENCY,
    "GradientAccumulationOptimizerV2.name": "it is called by the name of its `opt`",
    "poplar_options.*": "plans have no such choice in the model",
    "compilation_poplar_options.*": "there is no engine of Poplar to influence",
}
