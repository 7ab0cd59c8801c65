"""What the Snakefile asks while the job graph is built: runs, checks of the configuration, lookups."""
