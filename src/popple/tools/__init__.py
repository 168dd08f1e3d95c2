"""The `popple` command line: `run`, `report`, `explain`, `view`, `targets`, `doctor`.

One module per command, each with a `COMMAND` that says its name, its arguments and what
it does; `cli` holds the table. No command imports a framework.
"""
