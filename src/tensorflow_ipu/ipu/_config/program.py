"""Categories that say how a program is compiled: operators, norms, order."""

from __future__ import annotations

from collections.abc import Mapping

from .enums import MergeRemoteBuffersBehaviour, SchedulingAlgorithm
from .protobuf import _Category
from .tree import deprecate_config_attributes


class _Convolutions(_Category):
    """Convolutions."""

    _fields: Mapping[str, str] = {"poplar_options": "convolution_options"}

    def __init__(self) -> None:
        """
        Options of Poplar for all convolutions: names and values, both text. Well known
        are "availableMemoryProportion", the part of a tile's memory that a convolution
        may use while it runs ("0.6" unless given; less memory takes more cycles), and
        "partialsType", "half" or "float".
        """
        self.poplar_options = {}


class _Matmuls(_Category):
    """Matrix multiplications."""

    _fields: Mapping[str, str] = {
        "clear_pass_type": "clear_matmul_pass_type",
        "poplar_options": "matmul_options",
    }

    def __init__(self) -> None:
        """
        Do not tell Poplar whether a multiplication belongs to the forward or to the
        backward pass.
        """
        self.clear_pass_type = False
        """
        Options of Poplar for all matrix multiplications, as for convolutions:
        "availableMemoryProportion", "partialsType" and others.
        """
        self.poplar_options = {}


class _Slices(_Category):
    """Slices and embeddings."""

    _fields: Mapping[str, str] = {"poplar_options": "slice_options"}

    def __init__(self) -> None:
        """
        Options of Poplar for all slices, updates of slices and embeddings.
        """
        self.poplar_options = {}


class _Pooling(_Category):
    """Pooling."""

    _fields: Mapping[str, str] = {"poplar_options": "pooling_options"}

    def __init__(self) -> None:
        """
        Options of Poplar for all pooling operators.
        """
        self.poplar_options = {}


class _NormsExperimental(_Category):
    """Options of norms that may change."""

    _fields: Mapping[str, str] = {
        "distributed_batch_norm_replica_group_size": (
            "experimental_distributed_batch_norm_replica_group_size"
        )
    }

    def __init__(self) -> None:
        """
        Number of replicas that share the statistics of a batch norm in training. With 4
        replicas and a size of 2, replicas 0 and 1 have the same mean and variance, and
        so have 2 and 3. It cannot be combined with I/O tiles.
        """
        self.distributed_batch_norm_replica_group_size = 1

    def _check(self) -> None:
        if self.distributed_batch_norm_replica_group_size < 1:
            name = self._get_full_name("distributed_batch_norm_replica_group_size")
            raise ValueError(f"{name} needs to be at least 1.")


class _Norms(_Category):
    """Batch, layer, group and instance norms."""

    _fields: Mapping[str, str] = {"use_stable_statistics": "use_stable_norm_statistics"}

    def __init__(self) -> None:
        """
        Subtract the mean before the variance is computed, which is slower and more
        precise.
        """
        self.use_stable_statistics = False
        """
        Options of norms that may change or go at any time.
        """
        self.experimental = _NormsExperimental()


class _Math(_Category):
    """Rewriting of arithmetic."""

    _fields: Mapping[str, str] = {
        "fast": "algebraic_simplifier_config.enable_fast_math",
        "dot_strength": "algebraic_simplifier_config.enable_dot_strength",
    }

    def __init__(self) -> None:
        """
        Allow any rewriting of arithmetic that is right for real numbers, even if
        rounding makes the result different.
        """
        self.fast = False
        """
        Allow products that are cheaper otherwise to be computed in another way.
        """
        self.dot_strength = True


@deprecate_config_attributes(
    {"enable_fast_math": "Use optimizations.math.fast instead."}
)
class _Optimizations(_Category):
    """Trades of memory against speed."""

    _fields: Mapping[str, str] = {
        "prefetch_data_streams": "prefetch_data_streams",
        "combine_embedding_lookups": "enable_multi_slice_combiner",
        "combine_matmuls": "enable_matmul_combiner",
        "enable_graph_outlining": "not speed_size_config.disable_graph_outlining",
        "merge_infeed_io_copies": "speed_size_config.merge_infeed_io_copies",
        "maximum_cross_replica_sum_buffer_size": "max_cross_replica_sum_buffer_size",
        "maximum_reduce_scatter_buffer_size": "max_reduce_scatter_buffer_size",
        "maximum_inter_ipu_copies_buffer_size": "max_inter_ipu_copies_buffer_size",
        "maximum_send_recv_cluster_size": "max_send_recv_cluster_size",
        "maximum_reduce_many_buffer_size": "max_reduce_many_buffer_size",
        "maximum_all_gather_buffer_size": "max_all_gather_buffer_size",
        "minimum_remote_tensor_size": "minimum_remote_tensor_size",
        "merge_remote_buffers": "remote_buffer_merging_mode",
        "enable_gather_simplifier": "not disable_gather_simplifier",
        "triangular_solve_expander_block_size": "triangular_solve_expander_block_size",
        "cholesky_block_size": "cholesky_block_size",
        "enable_fast_math": "enable_fast_math",
        "enable_dynamic_slice_replacement": "enable_dynamic_slice_replacement",
    }

    def __init__(self) -> None:
        self._declare_rewriting()
        self._declare_buffers()
        self._declare_blocks()

    def _declare_rewriting(self) -> None:
        """
        How arithmetic may be rewritten.
        """
        self.math = _Math()
        """
        Fetch the next input from the host while the IPU works.
        """
        self.prefetch_data_streams = True
        """
        Make one embedding lookup of several in the same table; may take more memory.
        """
        self.combine_embedding_lookups = False
        """
        Make one matrix multiplication of several with an operand in common.
        """
        self.combine_matmuls = False
        """
        Use the code of an operator again for operators like it.
        """
        self.enable_graph_outlining = True
        """
        Make one copy of the inputs that come from the host together; takes more memory.
        """
        self.merge_infeed_io_copies = True

    def _declare_buffers(self) -> None:
        """
        Bytes that sums over replicas may hold back in order to be done together.
        """
        self.maximum_cross_replica_sum_buffer_size = 0
        """
        Bytes that reduce-scatters may hold back in order to be done together.
        """
        self.maximum_reduce_scatter_buffer_size = 0
        """
        Bytes that copies between IPUs may hold back in order to be done together.
        """
        self.maximum_inter_ipu_copies_buffer_size = 0
        """
        Bytes that exchanges with the host may hold back in order to be done together.
        """
        self.maximum_send_recv_cluster_size = 0
        """
        Bytes that reductions may hold back in order to be done together.
        """
        self.maximum_reduce_many_buffer_size = 0
        """
        Bytes that all-gathers may hold back in order to be done together.
        """
        self.maximum_all_gather_buffer_size = 0
        """
        Bytes below which a tensor is not kept in remote memory.
        """
        self.minimum_remote_tensor_size = 128
        """
        Whether remote buffers of the same kind become one: a
        :py:class:`~tensorflow.python.ipu.config.MergeRemoteBuffersBehaviour`.
        """
        self.merge_remote_buffers = MergeRemoteBuffersBehaviour.IF_BENEFICIAL

    def _declare_blocks(self) -> None:
        """
        Rewrite gathers that are embedding lookups as such.
        """
        self.enable_gather_simplifier = True
        """
        Size of the blocks in which triangular systems are solved, each block on one
        tile; 0 leaves it to the compiler. Smaller blocks use more tiles and more code.
        """
        self.triangular_solve_expander_block_size = 0
        """
        Size of the blocks of a Cholesky decomposition, each block on one tile; 0 leaves
        it to the compiler. Smaller blocks use more tiles and more code.
        """
        self.cholesky_block_size = 0
        """
        Allow any rewriting of arithmetic that is right for real numbers.
        """
        self.enable_fast_math = False
        """
        Rewrite slices with computed offsets in forms that are cheaper on the IPU.
        """
        self.enable_dynamic_slice_replacement = True


class _Scheduling(_Category):
    """The order of operators."""

    _fields: Mapping[str, str] = {
        "algorithm": "speed_size_config.scheduler_selection",
        "maximum_scheduler_lookahead_depth": "max_scheduler_lookahead_depth",
        "maximum_scheduler_search_space_size": "max_scheduler_search_space_size",
    }

    def __init__(self) -> None:
        """
        How the order is found: a
        :py:class:`~tensorflow.python.ipu.config.SchedulingAlgorithm`.
        """
        self.algorithm = SchedulingAlgorithm.CHOOSE_BEST
        """
        How far `LOOK_AHEAD` looks.
        """
        self.maximum_scheduler_lookahead_depth = 5
        """
        How many operators `LOOK_AHEAD` weighs at a time.
        """
        self.maximum_scheduler_search_space_size = 64
