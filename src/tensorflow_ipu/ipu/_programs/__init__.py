"""IPU programs: what the device's compiler would take, here traced and run.

`compilation` knows whether a program is being built and for how many replicas,
`functions` runs programs that are `tf.function`s, `graphs` and `sessions` those of
TensorFlow 1.
"""
