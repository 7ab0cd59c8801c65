"""Declarations of jobs, which give rules their list of code, params and command.

A job reads its JSON (``provenance.job``) from standard input, which the shell neither expands nor limits in length: the
page of a large study reads thousands of files. The command printed by ``--printshellcmds`` repeats the job in any
terminal.
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
"""Resources that a job receives in its JSON: they change no result, so Snakemake does not compare them."""
COMMANDS = re.compile(r"-m workflow_scripts\.jobs (\w+) [^\n]*<<'END'\n(.*?)\nEND$", re.DOTALL | re.MULTILINE)
"""Pattern of function and JSON of each job in a text of commands."""

Modules = Callable[[Wildcards], Iterable[str]]
"""A function of a job's wildcards that returns modules below ``workflow_scripts``."""
Param = str | Callable[[Wildcards], str]
"""A param, or a function of a job's wildcards that returns it."""
Named = Any
"""Files of a job: ``items()`` yields roles, each with one path or several. Unnamed files are only dependencies."""

_COMMAND = """python -m workflow_scripts.jobs FUNCTION >{log:q} 2>&1 <<'END'
{{"module": "MODULE", "cached": CACHED, "portable": PORTABLE, "outside": "{params.outside}",
"settings": {params.settings},
"packages": {params.packages},
"files": {params.files}}}
END
"""


@dataclass(frozen=True)
class JobSpec:
    """The jobs of one rule: their function, its code, and the settings that it reads."""

    function: str
    """Module below ``workflow_scripts`` and name of the function, such as ``reporting.tables.make_table``."""
    settings: Param
    """Part of the configuration that a job reads, as JSON."""
    workplace: Workplace
    """Places of finished work, answers and local data."""
    imports: Modules | None = None
    """Modules that a job imports by name, besides the imports of its own module."""
    cached: bool = True
    """Whether finished outputs are reused; false for jobs that download or query services, which no key covers."""
    portable: bool = False
    """Whether other studies can reuse the outputs, because they depend on no path."""
    outside: Param = ""
    """Block of the external data or service that a job needs, such as ``datasets.wiki1m``; empty for none."""

    @property
    def module(self) -> str:
        """Return the module of the function."""
        return self.function.rpartition(".")[0]

    @property
    def code(self) -> Param:
        """Return the path of the list of a job's code, or an input function that returns it."""
        return self._by_modules(list_code)

    @property
    def params(self) -> dict[str, Any]:
        """Return the params of the rule.

        A change of ``settings`` or ``packages`` reruns the job, a change of ``outside`` or ``files`` does not.
        ``files`` contains the paths and the job's workplace. It is a function of ``input``: Snakemake compares inputs
        themselves, but no param that is computed from them.
        """
        return {
            "settings": self.settings,
            "packages": self._by_modules(package_versions),
            "outside": self.outside,
            "files": self._files,
        }

    @property
    def shell(self) -> str:
        """Return the command of the rule."""
        _, _, function = self.function.rpartition(".")
        values = {
            "FUNCTION": function,
            "MODULE": self.module,
            "CACHED": json.dumps(self.cached),
            "PORTABLE": json.dumps(self.portable),
        }
        return re.sub(r"\b[A-Z]{6,}\b", lambda match: values[match[0]], _COMMAND)

    def _files(self, wildcards: Wildcards, input: Named, output: Named, resources: Any) -> str:
        """Return the job's wildcards, files, resources and workplace as JSON, under Snakemake's names."""
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
        """Return a function's value for a job's modules, or a function of wildcards if the modules depend on them."""
        if self.imports is None:
            return function(self.module)
        imports = self.imports
        return lambda wildcards: function(self.module, *imports(wildcards))


def _by_role(files: Named) -> dict[str, str | list[str]]:
    return {role: paths if isinstance(paths, str) else list(paths) for role, paths in files.items()}
