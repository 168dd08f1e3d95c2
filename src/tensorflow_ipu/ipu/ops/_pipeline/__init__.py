"""Parts of `pipelining_ops`: settings, schedules, the traced step, accumulation."""
