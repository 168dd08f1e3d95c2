"""Keras 2.6 as programs for the IPU know it, made of tf_keras.

`names` is the table of what lay where, `proxy` the package `keras` built from it,
`behaviour` what tf_keras does otherwise than Keras 2.6 did, and `adoption` applies it.
Nothing is copied: a class has one identity, whatever name it is reached by.
"""
