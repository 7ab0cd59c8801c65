"""Verbs of ``python -m workflow_scripts``, one module each, and their shared parts."""
