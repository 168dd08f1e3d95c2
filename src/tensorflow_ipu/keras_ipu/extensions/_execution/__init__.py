"""How extended Keras models run: programs, weight updates, epochs, host loops."""
