"""Provenance of artefacts: records, embedded checksums, keys, the cache, the code of a job."""
