"""Functions by which the Snakefile builds the job graph: runs, checks of the configuration, paths."""
