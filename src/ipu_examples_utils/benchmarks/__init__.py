"""Runs the benchmarks that a benchmarks.yml describes and collects their numbers.

spec            benchmarks.yml: entries, and the variants that their parameters make
metrics         numbers read off what a command wrote, and those derived from them
variant         one command: run, watched, logged
results         benchmark_results.json, .csv and .xml, and the summary
custom_metrics  functions of the user's own
"""
