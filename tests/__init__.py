"""The tests; directories mirror src/, files here look at the repository as a whole."""
