"""Tools that programs import from the IPU back end."""
