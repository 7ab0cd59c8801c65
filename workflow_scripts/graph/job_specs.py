"""Declarations of jobs, from which rules take their list of code, params and command.

A job reads its JSON (``provenance.job``) from standard input, where the shell neither expands anything nor limits the
length: the page of a large study reads thousands of files. The command that ``--printshellcmds`` prints repeats the job
in any terminal.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from workflow_scripts.graph.code_lists import list_code, package_versions
from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.settings.workplace import Workplace

OPERATIONAL = ("checkpoint_minutes", "chunk", "contract", "gpu", "service")
"""Resources that reach a job in its JSON: they decide no result, so Snakemake does not compare them."""
COMMANDS = re.compile(r"-m workflow_scripts\.jobs (\w+) [^\n]*<<'END'\n(.*?)\nEND$", re.DOTALL | re.MULTILINE)
"""Function and JSON of every job in a text of commands."""

Modules = Callable[[Wildcards], Iterable[str]]
"""Modules below ``workflow_scripts``, by a job's wildcards."""
Param = str | Callable[[Wildcards], str]
"""A param, or a function of a job's wildcards that returns it."""
Named = Any
"""Files of a job: ``items()`` has roles, each with one path or several. Unnamed files are dependencies only."""

_COMMAND = """python -m workflow_scripts.jobs FUNCTION >{log:q} 2>&1 <<'END'
{{"module": "MODULE", "cached": CACHED, "portable": PORTABLE, "outside": "{params.outside}",
"settings": {params.settings},
"packages": {params.packages},
"files": {params.files}}}
END
"""


@dataclass(frozen=True)
class JobSpec:
    """The jobs of one rule: the function that does their work, its code, and what it reads of the configuration."""

    function: str
    """Module below ``workflow_scripts`` and name of the function, as in ``reporting.tables.make_table``."""
    settings: Param
    """JSON of the part of the configuration that a job reads."""
    workplace: Workplace
    """Where jobs find finished work, answers and local data."""
    imports: Modules | None = None
    """Modules that a job imports by name, besides those that its own module imports."""
    cached: bool = True
    """Whether finished outputs are reused. False for jobs that fetch, or ask services whose answers are in no key."""
    portable: bool = False
    """Whether the outputs depend on no path, so that other studies reuse them."""
    outside: Param = ""
    """The block that names what a job needs from outside, such as ``datasets.wiki1m``; empty if it needs nothing."""

    @property
    def module(self) -> str:
        """The module of the function."""
        return self.function.rpartition(".")[0]

    @property
    def code(self) -> Param:
        """The file that lists a job's code, or an input function that returns its path."""
        return self._by_modules(list_code)

    @property
    def params(self) -> dict[str, Any]:
        """The params of the rule.

        Settings and package versions, whose change reruns the job, the block of outside data, and file paths, whose
        change does not. ``files`` has the job's workplace, too. It is a function of ``input``: Snakemake compares
        inputs themselves, but no param that is computed from them.
        """
        return {
            "settings": self.settings,
            "packages": self._by_modules(package_versions),
            "outside": self.outside,
            "files": self._files,
        }

    @property
    def shell(self) -> str:
        """The command of the rule."""
        _, _, function = self.function.rpartition(".")
        values = {
            "FUNCTION": function,
            "MODULE": self.module,
            "CACHED": json.dumps(self.cached),
            "PORTABLE": json.dumps(self.portable),
        }
        return re.sub(r"\b[A-Z]{6,}\b", lambda found: values[found[0]], _COMMAND)

    def _files(self, wildcards: Wildcards, input: Named, output: Named, resources: Any) -> str:
        """Return the job's wildcards, files, resources and workplace as JSON, by Snakemake's names."""
        asked = {name: resources.get(name) for name in OPERATIONAL}
        operational = {name: json.loads(str(value)) for name, value in asked.items() if value is not None}
        return json.dumps(
            {
                "wildcards": dict(wildcards.items()),
                "inputs": _by_role(input),
                "outputs": _by_role(output),
                "operational": operational | {"workplace": self.workplace.model_dump(mode="json")},
            }
        )

    def _by_modules(self, function: Callable[..., str]) -> Param:
        """Return what a function makes of a job's modules, or a function of wildcards if these decide some of them."""
        if self.imports is None:
            return function(self.module)
        imports = self.imports
        return lambda wildcards: function(self.module, *imports(wildcards))


def _by_role(files: Named) -> dict[str, str | list[str]]:
    return {role: paths if isinstance(paths, str) else list(paths) for role, paths in files.items()}
