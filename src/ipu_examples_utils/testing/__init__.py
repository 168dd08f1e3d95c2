"""What tests of published examples import."""
