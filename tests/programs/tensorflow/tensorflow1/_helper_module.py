"""Imported by a program: here, not in the program, is what shows the version."""

import tensorflow as tf


def variable(name):
    return tf.get_variable(name, [2], initializer=tf.ones_initializer())
