"""Clients of translators and language models, and the store that keeps what they answered."""
