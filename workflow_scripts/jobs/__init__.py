"""Entry point of all jobs, and functions of rules, one module each; no other module imports them."""

import os
import sys

_CLONE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Last: otherwise a file next to the Snakefile could replace a module of Python or an installed one.
sys.path.sort(key=lambda folder: os.path.abspath(folder) == _CLONE)
