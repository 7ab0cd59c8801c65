"""The command of every job, and the JSON that it reads (``provenance.job``).

JSON reaches the job on its standard input, where a shell takes no quotation mark or dollar for its own and sets no
limit: the page of a large study reads thousands of files. What ``--printshellcmds`` prints repeats the job in any
terminal.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Protocol

from workflow_scripts.graph.slices import Wildcards

OPERATIONAL = ("checkpoint_minutes", "gpu", "service")
"""Resources that a job is told: they decide no result, and so Snakemake does not compare them."""
CALLS = re.compile(r"-m workflow_scripts\.jobs (\w+) [^\n]*<<'END'\n(.*?)\nEND$", re.DOTALL | re.MULTILINE)
"""Entry script and JSON of every job in a text of commands."""


class Named(Protocol):
    """Files of a job by role."""

    def items(self) -> Iterable[tuple[str, Any]]:
        """Role, and a path or several; files without a role are waited for, and not handed over."""


def command(script: str) -> str:
    """The command of a rule: its entry script on the rule's ``params`` settings, packages and files."""
    call = '{{"settings": {params.settings},\n"packages": {params.packages},\n"files": {params.files}}}'
    return f"python -m workflow_scripts.jobs {script} >{{log:q}} 2>&1 <<'END'\n{call}\nEND\n"


def call(settings: Any, packages: Any) -> dict[str, Any]:
    """The params of a rule: what decides its result besides its inputs, which Snakemake compares, and its files.

    Args:
        settings: JSON of the part of the configuration that a job reads, or a function of its wildcards.
        packages: JSON of versions, or such a function.
    """
    return {"settings": settings, "packages": packages, "files": _files}


def _files(wildcards: Wildcards, input: Named, output: Named, resources: Any) -> str:
    """What a job is handed besides settings and packages; the names are Snakemake's.

    Made of inputs, which Snakemake compares themselves, and not the params that are made of them.
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
