"""The start of every job, and functions of rules, a module each; no other module imports them."""

import sys

from workflow_scripts.provenance.places import installed_first

installed_first(
    sys.path
)  # before anything is looked for that a file of the working folder could be taken for

# Then this, so that the code is recorded as it was before a script loads any of it.
from workflow_scripts.provenance import snapshot as snapshot  # noqa: E402
