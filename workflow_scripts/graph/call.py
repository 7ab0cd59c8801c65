"""One call of snakemake: where the pipeline lies and works, notes of earlier calls, and params and inputs of rules.

Clone and working directory may be two folders. ``--directory``, a call from elsewhere and a workflow that uses this one
as a module all leave the clone where it is and put results into another working directory. Jobs find the clone's code
by PYTHONPATH, and look for no module in the working directory (PYTHONSAFEPATH), where a file may have the name of one
of Python's. The clone's resources are linked into the working directory, so that a file has one name, and a record one
content, wherever a study is made.

A job reads its JSON (``provenance.job``) from standard input, where the shell neither expands anything nor limits the
length: the page of a large study reads thousands of files. The command that ``--printshellcmds`` prints repeats the job
in any terminal.
"""

import hashlib
import json
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.provenance.closure import ROOT, meanings, packages, read_before
from workflow_scripts.provenance.key import canonical

# Folders and notes

RESOURCES = "resources"


def clone_folder(workflow: Any) -> str:
    """The folder of the Snakefile that is being read, seen from the working directory.

    Ends the process with a line if it is not a folder on this machine: jobs import the Python package in it.
    """
    folder: str = workflow.current_basedir.get_path_or_uri(secret_free=True)
    if not Path(folder).is_dir():
        sys.exit(
            f"ConfigError: {folder}: jobs import the Python package next to the Snakefile. "
            "Clone the repository and point `snakefile:` at the clone."
        )
    return os.path.relpath(folder)


def open_place(clone: Path) -> None:
    """Make code and resources of the clone reachable from the working directory."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ |= {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONSAFEPATH": "1"}
    here = Path(RESOURCES)
    if (clone / RESOURCES).resolve() == here.resolve():
        return
    here.mkdir(exist_ok=True)
    for folder in (clone / RESOURCES).iterdir():
        link = here / folder.name
        if folder.is_dir() and (not link.exists() or _leads_to_another_clone(link, folder)):
            link.unlink(missing_ok=True)
            link.symlink_to(folder.resolve())


def _leads_to_another_clone(link: Path, folder: Path) -> bool:
    """Whether a link was made for another clone; a link of the user's own leads elsewhere."""
    clone = link.resolve().parent.parent
    is_clone = (clone / "Snakefile").is_file() and (clone / RESOURCES / folder.name).is_dir()
    return link.is_symlink() and not link.samefile(folder) and is_clone


def is_in_job() -> bool:
    """Whether Snakemake was started by Snakemake, to run a job on its own or on another machine."""
    return "--mode" in sys.argv


def call_words() -> list[str]:
    """The command line behind ``snakemake``, of a call by a person; none where another program reads the Snakefile."""
    program = Path(sys.argv[0])
    by_name = "snakemake" in (program.name, program.parent.name)
    return sys.argv[1:] if by_name and not is_in_job() else []


STUDIES = Path(".snakemake/studies")
"""Below the working directory: the configuration with which each study was run last."""
HASHES = Path(".snakemake/hashes.json")
"""Size, date, inode and sha256 of files outside the repository; it is computed again if one of the others differs."""
_SETTLED_SECONDS = 2.0
"""A file that was written this recently may be written again under the same date."""


class Call(NamedTuple):
    """Files and values that a call of snakemake adds to the repository's configuration."""

    configfiles: list[str]
    config: dict[str, Any]
    """Values given by --config."""


def note_call(study: str, configfiles: Iterable[str | Path], config: Mapping[str, Any]) -> None:
    """Note a study's configuration when a run starts that is not a dry run."""
    asked = {"configfiles": [*map(from_here, configfiles)], "config": dict(config)}
    write_note(STUDIES / f"{study}.json", json.dumps(asked, indent=1))


def from_here(file: str | Path) -> str:
    """The path of a file seen from the working directory, which may be copied or moved with what it holds."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def last_call(study: str) -> Call | None:
    """The call of a study's last run in this folder; None if there was none."""
    note = read_note(STUDIES / f"{study}.json")
    return Call(**note) if note else None


def write_note(path: Path, text: str) -> None:
    """Write a note whole or not at all.

    ``artefacts.atomic`` would do it too, but takes PyArrow along, which a dry run can do without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def read_note(path: Path) -> dict[str, Any]:
    """The JSON of a note; nothing where it is missing or damaged."""
    with suppress(OSError, ValueError):
        note = json.loads(path.read_text("utf-8"))
        if isinstance(note, dict):
            return note
    return {}


def sha256_now(path: Path) -> str:
    """The SHA-256 of a file, from the notes if the file has not changed since."""
    name, hashes, stat = str(path.absolute()), _noted_hashes(HASHES.absolute()), path.stat()
    state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    *noted, sha256 = hashes.get(name, [""])
    if noted != state:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time() - stat.st_mtime > _SETTLED_SECONDS:
            hashes[name] = [*state, sha256]
            write_note(HASHES, json.dumps(hashes))
    return str(sha256)


_noted_hashes = cache(read_note)


# Parts of the configuration

Config = dict[str, Any]


Wildcards = Any
"""A job's wildcards: their values by attribute and in order; ``items()`` has names and values."""


def parts(thing: Callable[[Wildcards], object], *names: str, **called: str) -> Callable[[Wildcards], str]:
    """Make a param function: parts of the configuration, or of a job's run or suite, with their defaults as JSON.

    One string with sorted keys, because Snakemake compares params as a set of their ``repr``: two
    numbers that trade places would count as unchanged, and reordered keys as a change.

    Args:
        thing: By a job's wildcards.
        names: Attributes that have their own names in the slice; what is empty is left out.
        called: Name in the slice to dotted path from the thing, where these differ; ``{wildcards}`` are filled in.
    """
    paths = dict(zip(names, names, strict=True)) | called

    def of(wildcards: Wildcards) -> str:
        job, given = thing(wildcards), dict(wildcards.items())
        values = {name: at(job, path.format(**given)) for name, path in paths.items()}
        return as_json({name: value for name, value in values.items() if value not in (None, [], {})})

    return of


def filled(pattern: str, thing: Callable[[Wildcards], Any]) -> Callable[[Wildcards], str | list[str]]:
    """Make an input function: a path with what a job's run or block says; no file where that says nothing.

    Args:
        pattern: Has attributes or keys of the thing, and wildcards, in braces.
        thing: By a job's wildcards.
    """
    names = re.findall(r"{(\w+)}", pattern)

    def of(wildcards: Wildcards) -> str | list[str]:
        job, given = thing(wildcards), dict(wildcards.items())
        has = job if isinstance(job, Mapping) else {name: getattr(job, name, None) for name in names}
        named = {name: given.get(name) or has.get(name) for name in names}
        return pattern.format(**named) if all(named.values()) else []

    return of


def having(section: Mapping[str, Any], key: str, value: Any = None) -> list[str]:
    """Names of the blocks of a section that have a key, or that have it with a value."""
    return [
        name
        for name, block in section.items()
        if hasattr(block, key) and value in (None, getattr(block, key))
    ]


def as_json(value: Any) -> str:
    """JSON with sorted keys; equal numbers are spelled alike, since Snakemake compares params as text."""
    return json.dumps(
        canonical(value), sort_keys=True, default=lambda block: canonical(block.model_dump(mode="json"))
    )


def at(value: Any, path: str) -> Any:
    """The part of some settings at a dotted path."""
    for key in path.split("."):
        value = value[key] if isinstance(value, Mapping) else getattr(value, key)
    return value


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """Settings with dotted keys; lists of blocks are numbered, other lists are values."""
    blocks = isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    inside: Mapping[Any, Any] = dict(enumerate(value)) if blocks else value
    if not isinstance(inside, Mapping) or (place and not inside):
        return {place: value}
    found: dict[str, Any] = {}
    for key, part in inside.items():
        found |= flat(part, f"{place}.{key}" if place else str(key))
    return found


def one_of(names: Iterable[str]) -> str:
    """A wildcard constraint that matches ``names`` alone; without names, it matches nothing.

    Common prefixes are factored out. For hundreds of runs the pattern is a quarter as long, and Snakemake, which
    matches it with every file of every job, does so ten times as fast.
    """
    return _pattern([*names]) or "(?!)"


def _pattern(names: Sequence[str]) -> str:
    """A regular expression for the ends of names that begin alike."""
    ends = defaultdict[str, list[str]](list)
    for name in filter(None, names):
        ends[name[0]].append(name[1:])
    branches = [re.escape(letter) + _pattern(after) for letter, after in ends.items()]
    joined = branches[0] if len(branches) == 1 and "" not in names else f"(?:{'|'.join(branches)})"
    return "" if not branches else f"{joined}?" if "" in names else joined


# Commands


OPERATIONAL = ("checkpoint_minutes", "chunk", "contract", "gpu", "service")
"""Resources that reach a job in its JSON: they decide no result, so Snakemake does not compare them."""
CALLS = re.compile(r"-m workflow_scripts\.jobs (\w+) [^\n]*<<'END'\n(.*?)\nEND$", re.DOTALL | re.MULTILINE)
"""Entry script and JSON of every job in a text of commands."""


Named = Any
"""Files of a job: ``items()`` has roles, each with a path or several; files without one are waited for alone."""

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
