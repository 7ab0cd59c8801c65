"""Encoders and their parts: tensors in, tensors out; loading and saving of model folders."""
