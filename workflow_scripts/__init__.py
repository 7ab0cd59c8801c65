"""Semblance: sentence-embedding methods reproduced, compared and audited on one footing."""
