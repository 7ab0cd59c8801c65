"""Benchmarks: ratios of speed to the usual alternatives, measured in the same process: python -m benchmarks --help.

A benchmark is a module with ``CODE``, the paths of the code that it measures, and ``measure(timing)``, which yields a
``harness.Measured`` for each of its ratios. Some also have ``explain(timing)``, which prints a profile.
"""
