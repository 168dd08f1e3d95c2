"""Pipeline stages of Keras models: assignments, the plan made of them, its table."""
