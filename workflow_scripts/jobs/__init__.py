"""Entry scripts, one per rule and named after it; no other module imports them."""

# Imported first, so that the code is recorded as it was before a script loads any of it.
from workflow_scripts.provenance import snapshot as snapshot
