"""Cycles of codelets as pure functions of numbers, one file per family.

Each function takes what one tile holds and gives the cycles of one vertex there. The
numbers are those of the open PopLibs estimators; where the source is silent a
comment says "assumed". `num_workers` is the chip's number of hardware threads.
"""
