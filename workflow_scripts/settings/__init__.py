"""Typed settings: a class for each part of the configuration, without the code that computes."""
