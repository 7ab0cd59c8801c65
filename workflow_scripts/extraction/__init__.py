"""Sentence vectors without training: which token vectors, how they are weighted, how the average is post-processed."""
