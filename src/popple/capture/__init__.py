"""Front ends: a framework program becomes a native step function and a Graph.

One package per framework; each imports its framework, `popple.graph` and, of the passes
of `popple.place`, the one that removes what a program does not need.
"""
