"""Front ends: a framework program becomes a native step function and a Graph.

One package per framework; each imports its framework and `popple.graph` only.
"""
