"""The start of every job, and functions of rules, a module each; no other module imports them."""

import os
import sys

_CLONE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Last, so that no file next to the Snakefile is taken for a module of Python's, or for an installed one.
sys.path.sort(key=lambda folder: os.path.abspath(folder) == _CLONE)
