"""Encoders and their parts: tensors in, tensors out; loading and saving of model folders."""

TOKENISER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")
"""Files of tokenisers; the folder of every encoder has at least one of them."""
