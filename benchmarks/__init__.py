"""Speed as ratios against what a user would pick instead, measured in the same process: python -m benchmarks --help.

A benchmark is a module with ``CODE``, the paths of what it measures, and ``measure(timing)``, which yields a
``harness.Measured`` for each of its ratios; where it can print what the time goes into, also ``explain(timing)``.
"""
