"""Tests of the browser viewer: the page, the server, and both in a real browser."""
