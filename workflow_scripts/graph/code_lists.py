"""The code of a job as a file for Snakemake: a list of its modules with the hashes of their syntax trees."""

import hashlib
import json
import sys
from functools import cache
from pathlib import Path

from workflow_scripts.graph.notes import read_note, write_note
from workflow_scripts.provenance.closure import SOURCES, code_hashes, packages

FOLDER = Path(".snakemake/code")
"""Folder of the lists below the working directory; they can be rebuilt at any time, so they are no results."""
PARSED = FOLDER / f"sources_by_{sys.implementation.cache_tag}.json"
"""Parsed sources by content hash, reused by the next process; one file per Python version, whose trees differ."""


@cache
def list_code(*modules: str) -> str:
    """Return the path of a list of the code that some modules run; it is only written if it has changed.

    Raises:
        ConfigError: if one of the modules has no file.
    """
    _recall()
    # One folder for each list: Snakemake lists a folder once and takes files written there later for missing.
    first, *others = modules
    digest = hashlib.sha256(" ".join(sorted(others)).encode()).hexdigest()[:12]
    path = FOLDER / (f"{first}-{digest}" if others else first) / "meaning.json"
    listed = code_hashes("jobs", *modules)  # the package "jobs" starts each of them
    text = json.dumps(listed, indent=1, sort_keys=True) + "\n"
    if not path.exists() or path.read_text("utf-8") != text:
        write_note(path, text)
    if SOURCES.has_new:
        write_note(PARSED, json.dumps(SOURCES.note()))
    return path.as_posix()


@cache
def _recall() -> None:
    """Load the hashes that earlier processes have stored, once per process."""
    SOURCES.recall(read_note(PARSED))


@cache  # reading the versions takes 30 ms, and thousands of jobs need the same few
def package_versions(*modules: str) -> str:
    """Return the versions of the packages that some modules import, as a param: an upgrade reruns their jobs."""
    return json.dumps(packages(*modules), sort_keys=True)
