"""One reader per source format, imported by the name that a dataset's source gives (``readers.base``)."""
