"""Sentence vectors without training: choice and weighting of token vectors, and post-processing of their average."""
