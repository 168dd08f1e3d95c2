"""Placement: passes that turn what the user wrote into what the chips run."""

from popple.place.accumulate_gradients import AccumulateGradients
from popple.place.apply_op_options import ApplyOpOptions
from popple.place.bound_memory import BoundMemory
from popple.place.fuse_dropout import FuseDropout
from popple.place.group_convolutions import GroupConvolutions
from popple.place.make_on_device import MakeOnDevice
from popple.place.mark_linear_layers import MarkLinearLayers
from popple.place.offload import Offload
from popple.place.outline import Outline
from popple.place.passes import Pass, run_passes
from popple.place.pipeline import Pipeline, number_stages
from popple.place.recompute import Recompute, is_recomputed
from popple.place.remove_dead import RemoveDead
from popple.place.repeat import RepeatOnDevice
from popple.place.replicate import Replicate
from popple.place.schedule import Schedule
from popple.place.shard import Shard
from popple.place.share_updates import ShareUpdates
from popple.place.update_weights import UpdateWeights

__all__ = [
    "AccumulateGradients",
    "ApplyOpOptions",
    "BoundMemory",
    "FuseDropout",
    "GroupConvolutions",
    "MakeOnDevice",
    "MarkLinearLayers",
    "Offload",
    "Outline",
    "Pass",
    "Pipeline",
    "Recompute",
    "RemoveDead",
    "RepeatOnDevice",
    "Replicate",
    "Schedule",
    "Shard",
    "ShareUpdates",
    "UpdateWeights",
    "is_recomputed",
    "number_stages",
    "run_passes",
]
