"""The user's optimiser and its twin on the device."""
