"""Checks on provenance: what made a file, whether it is still intact, why two files differ."""
