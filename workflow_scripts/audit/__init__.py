"""Provenance, checked and shown: what made a file, whether it is as it was made, why two files differ."""
