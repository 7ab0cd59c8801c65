"""Data: sources, readers for every format, corpora."""
