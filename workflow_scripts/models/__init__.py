"""Encoders and their parts: tensors in, tensors out; loading and saving of model folders."""

TOKENISER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")
"""One of them is in the folder of every encoder."""
