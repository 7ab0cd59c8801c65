"""Command-line tools for people, in addition to Snakemake and the audit."""
