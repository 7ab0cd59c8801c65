"""Data: sources, readers of every format, corpora; tables out."""
