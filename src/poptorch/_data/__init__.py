"""Data loading: batches of one call, loaded in this process or in another."""
