"""The code behind a job, as Snakemake sees it: one small input file that changes when the code's meaning does.

Snakemake compares inputs by content. A list of the modules themselves would rerun jobs after an edited comment, so a
rule's ``input.code`` is a file that lists the meaning of every module in its closure (``provenance.closure``). It is
written again only when that list changes, whatever the dates of the modules say. An edit known to be harmless is
waived for one run by ``--consider-ancient RULE=code``.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from workflow_scripts.graph.notes import write_note
from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.provenance.closure import meanings, packages, read_before

FOLDER = Path(".snakemake/code")
"""Below the working directory: the lists can be made again at any time, so that they are no results."""
READ_BEFORE = FOLDER / f"read_by_{sys.implementation.cache_tag}.json"
"""What was read of sources, by their hash, for the next process; versions of Python differ in their syntax trees."""


@cache
def code_of(*modules: str) -> str:
    """Write what running ``modules`` means, if that has changed, and return the path of the file.

    Args:
        modules: The entry script first, such as ``jobs.train_encoder``, then what it imports by name.

    Raises:
        ConfigError: if there is no file for one of ``modules``.
    """
    _recall()
    # A folder each, because Snakemake looks into a folder once and takes what is written there later for missing.
    path = FOLDER / _name(modules) / "meaning.json"
    known = len(read_before)
    text = json.dumps(meanings(*modules), indent=1, sort_keys=True) + "\n"
    if not path.exists() or path.read_text("utf-8") != text:
        write_note(path, text)
    if len(read_before) > known:
        write_note(READ_BEFORE, json.dumps(read_before))
    return path.as_posix()


@cache
def _recall() -> None:
    """Take over what earlier processes have read of sources; a file that is no JSON is written anew."""
    try:
        read_before.update(json.loads(READ_BEFORE.read_text("utf-8")))
    except (FileNotFoundError, ValueError):
        return


def _name(modules: tuple[str, ...]) -> str:
    script = modules[0].removeprefix("jobs.")
    others = sorted(modules[1:])
    return f"{script}-{hashlib.sha256(' '.join(others).encode()).hexdigest()[:12]}" if others else script


@cache  # reading the versions takes 30 ms, and thousands of jobs ask for the same few
def versions(*modules: str) -> str:
    """Versions of the packages that running ``modules`` imports, as a param: an upgrade reruns its users."""
    return json.dumps(packages(*modules), sort_keys=True)


Named = Callable[[Wildcards], Iterable[str]]
"""What a job imports by name, besides its script."""


def code_with(script: str, modules: Named) -> Callable[[Wildcards], str]:
    """An input function: the code of a script, and of what its job imports by name."""
    return lambda wildcards: code_of(script, *modules(wildcards))


def versions_with(script: str, modules: Named) -> Callable[[Wildcards], str]:
    """A param function: versions of the packages behind both."""
    return lambda wildcards: versions(script, *modules(wildcards))
