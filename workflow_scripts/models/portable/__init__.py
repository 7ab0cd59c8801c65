"""Modules of sentence-transformers whose files go into model folders: they import nothing of this project."""
