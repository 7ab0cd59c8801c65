"""Columns of Parquet artefacts, one module a stage, so that a new column of one stage keys no other."""
