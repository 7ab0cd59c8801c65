"""The command of every job, and the JSON that it reads (``provenance.job``).

The job reads its JSON from standard input, where the shell neither expands anything nor limits the length: the page of
a large study reads thousands of files. The command that ``--printshellcmds`` prints repeats the job in any terminal.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from workflow_scripts.graph.place import read_note, write_note
from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.provenance.closure import meanings, packages, read_before

OPERATIONAL = ("checkpoint_minutes", "chunk", "contract", "gpu", "service")
"""Resources that reach a job in its JSON: they decide no result, so Snakemake does not compare them."""
CALLS = re.compile(r"-m workflow_scripts\.jobs (\w+) [^\n]*<<'END'\n(.*?)\nEND$", re.DOTALL | re.MULTILINE)
"""Entry script and JSON of every job in a text of commands."""


class Named(Protocol):
    """Files of a job by role."""

    def items(self) -> Iterable[tuple[str, Any]]:
        """Role, and a path or several; files without a role are waited for, and not handed over."""


_COMMAND = """python -m workflow_scripts.jobs RULE >{log:q} 2>&1 <<'END'
{{"module": "{params.module}",
"settings": {params.settings},
"packages": {params.packages},
"files": {params.files}}}
END
"""


def command(rule: str) -> str:
    """The command of a rule, whose name may be another where its workflow is used as a module."""
    return _COMMAND.replace("RULE", rule)


Modules = Callable[[Wildcards], Iterable[str]]
"""Modules that a job imports by name, besides its own."""


def call(module: str, settings: Any, by_name: Modules | None = None) -> dict[str, Any]:
    """The params of a rule: what decides its result besides its inputs, which Snakemake compares, and its files.

    Args:
        module: Below ``workflow_scripts``, with a function of the rule's name that does its work.
        settings: JSON of the part of the configuration that a job reads, or a function of its wildcards.
        by_name: What a job imports by name, if that depends on its wildcards.
    """
    of_job = by_name and (lambda wildcards: versions(module, *by_name(wildcards)))
    return {"module": module, "settings": settings, "packages": of_job or versions(module), "files": _files}


def _files(wildcards: Wildcards, input: Named, output: Named, resources: Any) -> str:
    """The job's wildcards, files and resources, by Snakemake's names.

    A function of ``input``, because Snakemake compares inputs themselves, but no param that is computed from them.
    """
    asked = ((name, getattr(resources, name, None)) for name in OPERATIONAL)
    return json.dumps(
        {
            "wildcards": dict(wildcards.items()),
            "inputs": _roles(input),
            "outputs": _roles(output),
            "operational": {name: json.loads(str(value)) for name, value in asked if value is not None},
        }
    )


def _roles(files: Named) -> dict[str, str | list[str]]:
    return {role: paths if isinstance(paths, str) else list(paths) for role, paths in files.items()}


FOLDER = Path(".snakemake/code")
"""Below the working directory: the lists can be made again at any time, so that they are no results."""
READ_BEFORE = FOLDER / f"sources_by_{sys.implementation.cache_tag}.json"
"""What was read of sources, by their hash, for the next process; versions of Python differ in their syntax trees."""


def code(module: str, by_name: Modules | None = None) -> str | Callable[[Wildcards], str]:
    """The file that lists the code of a job, or an input function: what it imports by name may depend on wildcards."""
    return (lambda wildcards: _list_code(module, *by_name(wildcards))) if by_name else _list_code(module)


@cache
def _list_code(*modules: str) -> str:
    """Write what running some modules means, if that has changed, and return the path of the file.

    Raises:
        ConfigError: if there is no file for one of them.
    """
    _recall()
    # A folder each, because Snakemake looks into a folder once and takes what is written there later for missing.
    first, *others = modules
    digest = hashlib.sha256(" ".join(sorted(others)).encode()).hexdigest()[:12]
    path = FOLDER / (f"{first}-{digest}" if others else first) / "meaning.json"
    known = len(read_before)
    text = (
        json.dumps(meanings("jobs", *modules), indent=1, sort_keys=True) + "\n"
    )  # whose package starts each
    if not path.exists() or path.read_text("utf-8") != text:
        write_note(path, text)
    if len(read_before) > known:
        write_note(READ_BEFORE, json.dumps(read_before))
    return path.as_posix()


@cache
def _recall() -> None:
    """Take over what earlier processes have read of sources."""
    read_before.update(read_note(READ_BEFORE))


@cache  # reading the versions takes 30 ms, and thousands of jobs ask for the same few
def versions(*modules: str) -> str:
    """Versions of the packages that running some modules imports, as a param: an upgrade reruns their users."""
    return json.dumps(packages(*modules), sort_keys=True)
