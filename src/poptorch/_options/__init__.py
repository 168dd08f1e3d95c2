"""Options of a model: how they are described, stored, checked and read from files."""
