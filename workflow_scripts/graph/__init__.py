"""Functions that the Snakefile calls while it builds the job graph: runs, checks of the configuration, paths."""
