"""Decoding for connectionist temporal classification: prefix beam search.

All examples of a batch and all their beams advance together, one time step at a time.
A beam is a prefix with two log-probabilities: of the paths that end with a blank and
of those that end with its last label. A prefix can come about in two ways, by staying
and by growing out of a shorter beam, and both must be added up; prefixes are compared
by a 64-bit key.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._errors import Error
from .checks import check_tensor

__all__ = ["ctc_beam_search_decoder"]

_NEVER = float("-inf")
_KEY_FACTOR = 6364136223846793005  # any large odd number spreads keys well


def ctc_beam_search_decoder(
    probs: Tensor,
    lengths: Tensor,
    blank: int = 0,
    beam_width: int = 100,
    top_paths: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """The most likely label sequences of log-probabilities [time, batch, classes].

    `lengths` says how many time steps each example has. Returns log-probabilities
    [batch, top_paths], lengths [batch, top_paths] and labels [batch, top_paths, time],
    with blanks behind a sequence's end.
    """
    check_tensor(probs, "The probs of ctc_beam_search_decoder")
    check_tensor(lengths, "The lengths of ctc_beam_search_decoder")
    if probs.dim() != 3:
        raise Error(
            "The probs of ctc_beam_search_decoder must have the dimensions time, batch "
            f"and classes, but there are {probs.dim()}."
        )
    if not 0 <= blank < probs.shape[2]:
        raise Error(f"blank is {blank}, but there are {probs.shape[2]} classes.")
    if not 1 <= top_paths <= beam_width:
        raise Error(
            f"top_paths must be from 1 to the beam_width of {beam_width}, not "
            f"{top_paths}."
        )
    return _decode(probs, lengths, blank, beam_width, top_paths)


@torch.library.custom_op(
    "poptorch::ctc_beam_search_decoder",
    mutates_args=(),
    schema="(Tensor probs, Tensor lengths, int blank, int beam_width, int top_paths) "
    "-> (Tensor, Tensor, Tensor)",
)
def _decode(
    probs: Tensor, lengths: Tensor, blank: int, beam_width: int, top_paths: int
) -> tuple[Tensor, Tensor, Tensor]:
    beams = _first_beams(probs, blank, beam_width)
    steps = probs.float().unbind(0)
    for time, step in enumerate(steps):
        is_running = (time < lengths).view(-1, 1)
        beams = _chosen(is_running, _advanced(beams, step, blank), beams)
    best = slice(0, top_paths)
    return (
        beams.total[:, best].to(probs.dtype).contiguous(),
        beams.length[:, best].to(torch.int32).contiguous(),
        beams.path[:, best].to(torch.int32).contiguous(),
    )


@_decode.register_fake
def _(
    probs: Tensor, lengths: Tensor, blank: int, beam_width: int, top_paths: int
) -> tuple[Tensor, Tensor, Tensor]:
    time, batch, _ = probs.shape
    return (
        probs.new_empty(batch, top_paths),
        probs.new_empty(batch, top_paths, dtype=torch.int32),
        probs.new_empty(batch, top_paths, time, dtype=torch.int32),
    )


@dataclass(frozen=True)
class _Beams:
    """Prefixes [batch, beams], best first; those not in use have probability 0."""

    ends_blank: Tensor
    ends_label: Tensor
    last: Tensor  # the last label
    length: Tensor
    key: Tensor
    path: Tensor  # [batch, beams, time]

    @property
    def total(self) -> Tensor:
        """Log-probability of each prefix."""
        return torch.logaddexp(self.ends_blank, self.ends_label)


def _first_beams(probs: Tensor, blank: int, beam_width: int) -> _Beams:
    """The empty prefix, and nothing else."""
    time, batch, _ = probs.shape
    never = probs.new_full((batch, beam_width), _NEVER, dtype=torch.float32)
    ends_blank = never.clone()
    ends_blank[:, 0] = 0.0
    zero = torch.zeros_like(never, dtype=torch.int64)
    path = zero.new_full((batch, beam_width, time), blank)
    return _Beams(ends_blank, never, zero, zero, zero, path)


def _advanced(beams: _Beams, step: Tensor, blank: int) -> _Beams:
    """The best prefixes after one more time step; `step` is [batch, classes]."""
    width, num_classes = beams.last.shape[1], step.shape[1]
    stays_blank = beams.total + step[:, blank : blank + 1]
    stays_label = beams.ends_label + step.gather(1, beams.last)
    grows = _grown(beams, step, blank)
    stays_label, grows = _merged(beams, stays_label, grows)
    stays = torch.logaddexp(stays_blank, stays_label)
    found, index = torch.cat([stays, grows.flatten(1)], dim=1).topk(width, dim=1)
    has_grown = index >= width
    parent = torch.where(has_grown, (index - width) // num_classes, index)
    label = (index - width) % num_classes
    never = torch.full_like(found, _NEVER)
    length = beams.length.gather(1, parent)
    key = beams.key.gather(1, parent)
    path = beams.path.gather(1, parent.unsqueeze(2).expand(-1, -1, beams.path.shape[2]))
    place = length.clamp(max=path.shape[2] - 1).unsqueeze(2)
    written = torch.where(
        has_grown.unsqueeze(2), label.unsqueeze(2), path.gather(2, place)
    )
    return _Beams(
        torch.where(has_grown, never, stays_blank.gather(1, parent)),
        torch.where(has_grown, found, stays_label.gather(1, parent)),
        torch.where(has_grown, label, beams.last.gather(1, parent)),
        length + has_grown,
        torch.where(has_grown, _grown_key(key, label), key),
        path.scatter(2, place, written),
    )


def _grown(beams: _Beams, step: Tensor, blank: int) -> Tensor:
    """Log-probability of each prefix with each label behind it.

    A label counts as a new one after itself only if there was a blank between.
    """
    labels = torch.arange(step.shape[1], device=step.device)
    is_empty = (beams.length == 0).unsqueeze(2)
    is_repeated = (beams.last.unsqueeze(2) == labels) & ~is_empty
    before = torch.where(
        is_repeated, beams.ends_blank.unsqueeze(2), beams.total.unsqueeze(2)
    )
    return (before + step.unsqueeze(1)).masked_fill(labels == blank, _NEVER)


def _merged(beams: _Beams, stays: Tensor, grows: Tensor) -> tuple[Tensor, Tensor]:
    """Give what grows into a prefix that is already there to that prefix."""
    last = beams.last.unsqueeze(1).expand(-1, stays.shape[1], -1)
    is_same = _grown_key(beams.key.unsqueeze(2), last) == beams.key.unsqueeze(1)
    is_same &= (beams.length.unsqueeze(2) + 1) == beams.length.unsqueeze(1)
    is_same &= (beams.total > _NEVER).unsqueeze(1)
    moved = grows.gather(2, last).masked_fill(~is_same, _NEVER).amax(dim=1)
    is_moved = torch.zeros_like(grows, dtype=torch.int64)
    is_moved = is_moved.scatter_add(2, last, is_same.long()) > 0
    return torch.logaddexp(stays, moved), grows.masked_fill(is_moved, _NEVER)


def _grown_key(key: Tensor, label: Tensor) -> Tensor:
    return (key + label + 1) * _KEY_FACTOR


def _chosen(is_first: Tensor, first: _Beams, second: _Beams) -> _Beams:
    """Beams of `first` for some examples, of `second` for the others."""
    fields = [
        torch.where(is_first.unsqueeze(2) if one.dim() == 3 else is_first, one, other)
        for one, other in zip(_fields(first), _fields(second), strict=True)
    ]
    return _Beams(*fields)


def _fields(beams: _Beams) -> list[Tensor]:
    return list(vars(beams).values())
