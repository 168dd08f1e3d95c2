"""Estimators of TensorFlow 1, which TensorFlow has dropped: what IPU programs use.

Served as `tensorflow.python.estimator` and `tensorflow_estimator.python.estimator`. In:
a function that builds a model and one that makes a data set. Out: training, evaluation
and prediction in graphs and sessions, with checkpoints and summaries in a directory.
"""
