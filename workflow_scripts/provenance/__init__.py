"""What made an artefact: records, embedded checksums, code closures, the command line of a job."""
