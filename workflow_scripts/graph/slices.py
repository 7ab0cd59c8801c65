"""Param and input functions of rules, such as slices of the configuration as JSON."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from workflow_scripts.provenance.key import canonical

Config = dict[str, Any]


Wildcards = Any
"""A job's wildcards: values by attribute and in order; ``items()`` yields names and values."""


def settings_of(
    thing: Callable[[Wildcards], object], *names: str, **called: str
) -> Callable[[Wildcards], str]:
    """Return a param function: the named settings of a job's run, suite or grid as JSON, with defaults.

    The result is one string with sorted keys, because Snakemake compares params as a set of their ``repr``: two swapped
    numbers would count as unchanged, and reordered keys as a change.

    Args:
        thing: Function that returns the run, suite or grid for a job's wildcards.
        names: Attributes to include under their own names; empty ones are omitted.
        called: Dotted paths from the thing by name in the slice, if these differ; ``{wildcards}`` are filled in.
    """
    paths = dict(zip(names, names, strict=True)) | called

    def of(wildcards: Wildcards) -> str:
        job, given = thing(wildcards), dict(wildcards.items())
        values = {name: get_path(job, path.format(**given)) for name, path in paths.items()}
        return as_json({name: value for name, value in values.items() if value not in (None, [], {})})

    return of


def path_if_set(pattern: str, thing: Callable[[Wildcards], Any]) -> Callable[[Wildcards], str | list[str]]:
    """Return an input function that fills in a pattern, or returns no file if a value is missing.

    Args:
        pattern: Pattern; names in braces are wildcards, or attributes of the run or block.
        thing: Function that returns the run or block, or a mapping, for a job's wildcards.
    """
    names = re.findall(r"{(\w+)}", pattern)

    def of(wildcards: Wildcards) -> str | list[str]:
        job, given = thing(wildcards), dict(wildcards.items())
        has = job if isinstance(job, Mapping) else {n: getattr(job, n) for n in names if n not in given}
        values = {name: given.get(name) or has.get(name) for name in names}
        return pattern.format(**values) if all(values.values()) else []

    return of


def blocks_with(section: Mapping[str, BaseModel], key: str, value: Any = None) -> list[str]:
    """Return the names of a section's blocks that contain a key, or this key with a value."""
    having = {name: block for name, block in section.items() if key in type(block).model_fields}
    return [name for name, block in having.items() if value is None or getattr(block, key) == value]


def as_json(value: Any) -> str:
    """Return JSON with sorted keys and one spelling of equal numbers, since Snakemake compares params as text."""
    return json.dumps(
        canonical(value), sort_keys=True, default=lambda block: canonical(block.model_dump(mode="json"))
    )


def get_path(value: Any, path: str) -> Any:
    """Return the part of some settings at a dotted path."""
    for key in path.split("."):
        value = value[key] if isinstance(value, Mapping) else getattr(value, key)
    return value


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Return settings by dotted key; lists of blocks are numbered, other lists are values."""
    blocks = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    inside: Mapping[Any, Any] = dict(enumerate(value)) if blocks else value
    if not isinstance(inside, Mapping) or (path and not inside):
        return {path: value}
    flattened: dict[str, Any] = {}
    for key, part in inside.items():
        flattened |= flat(part, f"{path}.{key}" if path else str(key))
    return flattened


def name_pattern(names: Iterable[str]) -> str:
    """Return a wildcard constraint that matches only ``names``, and nothing if there are none.

    Common prefixes are factored out. For hundreds of runs this makes the pattern a quarter as long, and its match,
    which Snakemake tries with every file of every job, ten times as fast.
    """
    return _pattern([*names]) or "(?!)"


def _pattern(names: Sequence[str]) -> str:
    """Return a regular expression for the rest of names with a common prefix."""
    ends = defaultdict[str, list[str]](list)
    for name in filter(None, names):
        ends[name[0]].append(name[1:])
    branches = [re.escape(letter) + _pattern(after) for letter, after in ends.items()]
    joined = branches[0] if len(branches) == 1 and "" not in names else f"(?:{'|'.join(branches)})"
    return "" if not branches else f"{joined}?" if "" in names else joined
