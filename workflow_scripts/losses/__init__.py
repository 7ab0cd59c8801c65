"""Losses: tensors in, one scalar out."""
