"""Rewriting of traced graphs for running: nothing here changes what they compute.

channels_last     convolutions on a GPU with channels innermost
exposed           values inside a step that someone wants to see
gradient_counts   the share of large gradients, for automatic loss scaling
outbox            outputs that leave a GPU while the step goes on
reuse             results written into memory that is free
views             views that nobody needs
"""
