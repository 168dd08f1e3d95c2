"""The command line tools of an IPU system, for virtual devices: one file per tool.

In: a command line. Out: text or JSON in the documented formats, and an exit status. No
tool loads the planner or a framework unless its test needs it: `gc-monitor` is run
every two seconds by `watch`.
"""
