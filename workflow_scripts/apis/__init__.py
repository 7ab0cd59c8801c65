"""Clients for translators and language models, and the store of their answers."""
