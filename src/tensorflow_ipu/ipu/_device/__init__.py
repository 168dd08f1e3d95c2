"""The IPUs of this process: their configuration, the virtual pod, flags, events, feeds.

Here are the functions of `devices`; the other modules are imported by name.
"""

from .devices import (
    attach,
    configure,
    configured,
    connection_type,
    forget_programs,
    get_options,
    list_options,
    num_ipus,
    num_ipus_of_all_processes,
    on_configured,
    on_reset,
    ordinal_of,
    reset,
    running,
    system,
    use_ipu_model,
)

__all__ = [
    "attach",
    "configure",
    "configured",
    "connection_type",
    "forget_programs",
    "get_options",
    "list_options",
    "num_ipus",
    "num_ipus_of_all_processes",
    "on_configured",
    "on_reset",
    "ordinal_of",
    "reset",
    "running",
    "system",
    "use_ipu_model",
]
